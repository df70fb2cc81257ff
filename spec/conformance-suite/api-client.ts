// A caller of the HTTP API, who knows nothing of MCP: what it asks for the gateway asks the server, in its own name.

import { type Json, objectOr } from '../fixtures/wire.ts';
import type { Player } from './client-plays.ts';

const answerMs = 10_000;

/** The calls of one template, below `{gateway}/mcp/{template}`. They reject for every status but 200. */
export class ApiClient implements Player {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
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
    const { content } = await this.#ask('tools/call', params);
    return { content: Array.isArray(content) ? content : [] };
  }

  readResource(params: Json) {
    return this.#ask('resources/read', params);
  }

  getPrompt(params: Json) {
    return this.#ask('prompts/get', params);
  }

  async #list(what: 'tools' | 'resources' | 'prompts') {
    const { [what]: items } = await this.#ask(`${what}/list`);
    if (!Array.isArray(items)) throw new Error(`no list of ${what}`);
    return items
      .map(objectOr)
      .map((item) => ({ ...item, name: String(item.name) }) as Json & { name: string });
  }

  async #ask(path: string, params?: Json): Promise<Json> {
    const posted = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(params),
    };
    const signal = AbortSignal.timeout(answerMs);
    const response = await fetch(`${this.#url}/${path}`, { signal, ...(params === undefined ? {} : posted) });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
    return objectOr(JSON.parse(text));
  }
}
