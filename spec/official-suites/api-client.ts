// A caller of the HTTP API, which knows nothing of MCP: the gateway sends its requests to the server as the client.

import { type Json, objectOr } from '../fixtures/wire.ts';
import { type Caller, caller } from '../helpers/clients/caller.ts';
import type { ScenarioClient } from './client-scenarios.ts';

const answerMs = 10_000;

/** The calls of one template, below `{gateway}/mcp/{template}`. They reject for every status but 200. */
export class ApiClient implements ScenarioClient {
  readonly #call: Caller;

  constructor(url: string) {
    this.#call = caller(url, {}, answerMs);
  }

  async listTools() {
    return { tools: await this.#list('tools') };
  }

  async listResources() {
    const resources = await this.#list('resources');
    return { resources: resources.map(({ uri }) => ({ uri: String(uri) })) };
  }

  async listPrompts() {
    return { prompts: await this.#list('prompts') };
  }

  async callTool(params: Json) {
    const { content } = await this.#ask('POST /tools/call', params);
    return { content: Array.isArray(content) ? content : [] };
  }

  readResource(params: Json) {
    return this.#ask('POST /resources/read', params);
  }

  getPrompt(params: Json) {
    return this.#ask('POST /prompts/get', params);
  }

  async #list(what: 'tools' | 'resources' | 'prompts') {
    const { [what]: items } = await this.#ask(`GET /${what}/list`);
    if (!Array.isArray(items)) throw new Error(`no list of ${what}`);
    return items
      .map(objectOr)
      .map((item) => ({ ...item, name: String(item.name) }) as Json & { name: string });
  }

  async #ask(request: string, params?: Json): Promise<Json> {
    const { status, body } = await this.#call(request, params);
    if (status !== 200) throw new Error(`${request}: ${status} ${JSON.stringify(body)}`);
    return objectOr(body);
  }
}
