// A program that guards what the AI SDK calls, compiled under each major version of it.
import { generateText, jsonSchema, type LanguageModel, tool, wrapLanguageModel } from "ai";
import { Portcullis } from "@portcullis/sdk";
import { guardTools, portcullisMiddleware } from "@portcullis/sdk/ai";

const portcullis = new Portcullis();
declare const model: Parameters<typeof wrapLanguageModel>[0]["model"];
const city = jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } });
const guarded: LanguageModel = wrapLanguageModel({ model, middleware: portcullisMiddleware(portcullis, { input: true }) });
const tools = guardTools(portcullis, { weather: tool({ inputSchema: city, execute: async ({ city }) => `fine in ${city}` }) });
export const answer = () => generateText({ model: guarded, tools, prompt: "How is the weather?" });
