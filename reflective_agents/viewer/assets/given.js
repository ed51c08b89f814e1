// What the page shows: the data that lie in it, or what the page around it posts, as often as it does.

const embedded = JSON.parse(document.getElementById("picture").textContent);
const waits = embedded === null;
document.body.classList.toggle("framed", waits);

/** Call `show` with the data, again and again if they are posted. */
function given(show) {
  if (!waits) {
    show(embedded);
    return;
  }
  window.addEventListener("message", ({ source, origin, data }) => {
    if (source === parent && origin === location.origin && data?.show) show(data.show);
  });
  parent.postMessage({ ready: location.pathname }, location.origin);
}
