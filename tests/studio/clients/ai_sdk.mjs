// The AI SDK on /v1/responses, which is its default: plain, streaming, with a tool, in a form, refused.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const provider = createOpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "any" });
const found = {};
const plain = await generateText({ model: provider("chain_of_thought"), prompt: "Why?", temperature: 0 });
found.plain = plain.text;
found.counted = plain.usage.outputTokens > 0;
const { textStream } = streamText({ model: provider("chain_of_thought"), prompt: "Why?" });
found.stream = "";
for await (const piece of textStream) found.stream += piece;
const weather = tool({
  description: "Tells the weather.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `20 degrees in ${city}`,
});
const prompt = "How warm is it there? weather for two";
const agent = await generateText({ model: provider("react"), prompt, tools: { weather }, stopWhen: stepCountIs(4) });
found.tools = agent.text;
const form = Output.object({ schema: z.object({ city: z.string() }) });
found.form = (await generateText({ model: provider("chain_of_thought"), prompt: "Where?", output: form })).output;
try {
  await generateText({ model: provider("latz"), prompt: "Why?", maxRetries: 0 });
} catch (error) {
  found.refused = error.statusCode;
}
console.log(JSON.stringify(found));
