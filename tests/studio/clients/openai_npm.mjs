// OpenAI's client on stored responses: asked, fetched, followed, streamed, in the background, deleted.
import OpenAI from "openai";

const { responses } = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "any", maxRetries: 0 });
const model = "chain_of_thought";
const found = {};
const first = await responses.create({ model, input: "Why?" });
found.plain = first.output_text;
found.fetched = (await responses.retrieve(first.id)).output_text;
found.items = (await responses.inputItems.list(first.id)).data.length;
const events = await responses.create({ model, input: "How?", previous_response_id: first.id, stream: true });
found.stream = "";
for await (const event of events) if (event.type === "response.output_text.delta") found.stream += event.delta;
let waiting = await responses.create({ model, input: "Why alone?", background: true });
while (["queued", "in_progress"].includes(waiting.status)) {
  await new Promise((resolve) => setTimeout(resolve, 200));
  waiting = await responses.retrieve(waiting.id);
}
found.alone = waiting.output_text;
await responses.delete(first.id);
try {
  await responses.retrieve(first.id);
} catch (error) {
  found.refused = error.status;
}
console.log(JSON.stringify(found));
