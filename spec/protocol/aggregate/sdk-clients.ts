// The clients of both official SDKs, connected to a function that answers their lists: they reject what other clients reject.

import { Client as CurrentClient } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { ListField } from '../../../src/domain/mcp/mcp.ts';

export interface SdkClient {
  readonly name: string;
  readonly protocolVersion: string;
  /** Rejects when the client refuses the list. */
  read(list: ListField, items: readonly JsonObject[]): Promise<readonly unknown[]>;
}

const capabilities = { tools: {}, prompts: {}, resources: {} };
const serverInfo = { name: 'all', version: '1' };
const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';

type Message = JsonObject & { id?: number; method?: string };

/** A transport of the SDKs over which `answerTo` answers. */
class Answering {
  onmessage: ((message: never) => void) | undefined;
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  listed: JsonObject = {};

  async start(): Promise<void> {}
  async close(): Promise<void> {}

  async send(message: object): Promise<void> {
    const { id, method = '' }: Message = JSON.parse(JSON.stringify(message));
    if (id === undefined) return;
    const result =
      method === 'initialize'
        ? { protocolVersion: LEGACY, capabilities, serverInfo }
        : method === 'server/discover'
          ? { ...MODERN_RESULT, supportedVersions: [MODERN], capabilities, serverInfo }
          : this.listed;
    const answer = JSON.parse(JSON.stringify({ jsonrpc: '2.0', id, result })) as never;
    queueMicrotask(() => this.onmessage?.(answer));
  }
}

const MODERN_RESULT = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };

export async function sdkClients(): Promise<readonly SdkClient[]> {
  const info = { name: 'spec', version: '1' };
  const old = new OldClient(info);
  const legacy = new CurrentClient(info);
  const modern = new CurrentClient(info, { versionNegotiation: { mode: { pin: MODERN } } });
  return Promise.all([
    connected('SDK 1', old, LEGACY),
    connected('SDK 2, legacy', legacy, LEGACY),
    connected('SDK 2, modern', modern, MODERN),
  ]);
}

async function connected(
  name: string,
  client: OldClient | CurrentClient,
  protocolVersion: string,
): Promise<SdkClient> {
  const transport = new Answering();
  await client.connect(transport as never);
  const requests: Readonly<Record<ListField, () => Promise<object>>> = {
    tools: () => client.listTools(),
    prompts: () => client.listPrompts(),
    resources: () => client.listResources(),
    resourceTemplates: () => client.listResourceTemplates(),
  };
  const read = async (list: ListField, items: readonly JsonObject[]) => {
    transport.listed = { ...(protocolVersion === MODERN ? MODERN_RESULT : {}), [list]: [...items] };
    const found: unknown = Reflect.get(await requests[list](), list);
    return Array.isArray(found) ? found : [];
  };
  return { name, protocolVersion, read };
}
