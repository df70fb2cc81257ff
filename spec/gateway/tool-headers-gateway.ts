// A gateway before a real HTTP server of the modern era whose tools want arguments repeated in headers, its clients, and
// what it writes into the log.

import { setImmediate as turn } from 'node:timers/promises';
import { logEvents } from '../../src/cli/event-log.ts';
import { ANONYMOUS } from '../../src/domain/account.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import { codeOf } from '../helpers/outcome.ts';
import { Backend } from '../transports/http/tool-headers-harness.ts';
import { type RawServer, startRawServer } from '../transports/raw-server.ts';
import { modernRequest, postTo } from './mcp-post.ts';

/** What clients get: the status, and the result or the error. */
export interface Answered {
  readonly status: number | undefined;
  readonly message: JsonObject;
}

/** A server, where it is, and what it was asked. */
export interface Served extends RawServer {
  readonly backend: Backend;
}

export class ToolHeadersGateway {
  /** Of the first server. */
  readonly backend: Backend;
  readonly gateway: Gateway;
  readonly events: GatewayEvent[] = [];
  /** What stands in the log: level, message and fields. */
  readonly lines: (readonly [string, string, JsonObject])[] = [];
  /** Where clients come in; undefined for all templates as one. */
  template: string | undefined = 't';
  readonly #servers: Served[];

  private constructor(gateway: Gateway, first: Served) {
    this.gateway = gateway;
    this.backend = first.backend;
    this.#servers = [first];
    gateway.events$.subscribe((event) => this.events.push(event));
    const write = (level: string) => (fields: object, message: string) =>
      void this.lines.push([level, message, { ...fields }]);
    logEvents(gateway.events$, {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      isLevelEnabled: () => true,
    });
  }

  static async open(): Promise<ToolHeadersGateway> {
    return new ToolHeadersGateway(await createGateway(), await serve());
  }

  /** One more server like the first. */
  async another(): Promise<Served> {
    const other = await serve();
    this.#servers.push(other);
    return other;
  }

  async close(): Promise<void> {
    await this.gateway.close({ graceMs: 0 });
    for (const server of this.#servers) await server.close();
  }

  /** Warnings: message and fields. */
  get warnings(): (readonly [string, JsonObject])[] {
    return this.lines.filter(([level]) => level === 'warn').map(([, message, fields]) => [message, fields]);
  }

  /** Why tools were left out, each with its instance. */
  get reasons(): string[] {
    return this.warnings.map(([, { instance_id: id, reason }]) => `${id}: ${reason}`);
  }

  /** One more instance of template `t`, by default with the first server behind it; resolves when its tools are known. */
  async register(id: string, server = this.#servers[0]): Promise<void> {
    if (server === undefined) throw new Error('there is no server');
    const endpoint = server.url;
    await this.#listedAnew(server, () => this.gateway.register('t', { id, endpoint }, { waitMs: 5_000 }));
  }

  /** Has its connection opened anew; resolves when its tools are known again. */
  async restart(id: string): Promise<void> {
    const [first] = this.#servers;
    if (first !== undefined) await this.#listedAnew(first, () => this.gateway.restart('t', id));
  }

  /** Names of the tools that a client is shown. Another one than before is not served from memory. */
  async listed(client: string): Promise<string[]> {
    return (await this.#tools(client)).map(({ name }) => String(name));
  }

  /** The headers that a tool asks for, as a client is shown it. */
  async headersOf(client: string, name: string): Promise<unknown[]> {
    const { inputSchema } = Object((await this.#tools(client)).find((tool) => tool.name === name));
    return Object.values(Object(inputSchema).properties).map((property) => Object(property)['x-mcp-header']);
  }

  /** Calls a tool with headers that begin with `mcp-param-`; `{ region }` is one. */
  call(client: string, name: string, args: JsonObject, headers: Record<string, string>): Promise<Answered> {
    const params = Object.entries(headers).map(([header, value]) => [`mcp-param-${header}`, value]);
    return this.send(client, 'tools/call', { name, arguments: args }, Object.fromEntries(params));
  }

  async send(client: string, method: string, params: JsonObject, headers: object = {}): Promise<Answered> {
    const { message, headers: own } = modernRequest(method, params);
    const { status, answer } = await postTo(this.gateway, {
      ...{ template: this.template, message, headers: { ...own, ...headers } },
      principal: { ...ANONYMOUS, id: client },
    });
    return { status, message: answer };
  }

  /** The gateway lists the tools of an instance behind its back: it knows them when it knows what they lack. */
  async #listedAnew({ backend }: Served, cause: () => unknown): Promise<void> {
    const { lists } = backend;
    await cause();
    while (backend.lists === lists) await turn();
    while ((await codeOf(this.gateway.call('t', 'none of them'))) !== 'TOOL_NOT_FOUND') await turn();
    for (const server of this.#servers) server.backend.calls.length = 0;
  }

  async #tools(client: string): Promise<JsonObject[]> {
    const { message } = await this.send(client, 'tools/list', {});
    return Object(message.result).tools;
  }
}

async function serve(): Promise<Served> {
  const backend = new Backend();
  return { ...(await startRawServer(backend.respond)), backend };
}
