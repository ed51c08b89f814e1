# The server of `make serve`; Postgres and Redis are named by DATABASE_URL and REDIS_URL.
FROM python:3.12-slim
WORKDIR /app
COPY requirements/serve.txt requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements/serve.txt
COPY . .
RUN pip install --no-cache-dir --no-build-isolation --no-deps . && useradd --create-home --uid 10001 agent
USER 10001
ENV LANGSMITH_TRACING=false PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=10s --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready', timeout=5)"]
CMD ["python", "-m", "reflective_agents.serve", "--host", "0.0.0.0", "--port", "8000"]
