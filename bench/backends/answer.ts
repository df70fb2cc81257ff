// The answers of both fast backends. They are small, because the benchmark measures the programs in front of
// them. http.ts and stdio.ts have framing and transport.

const echo = {
  name: 'echo',
  description: 'Answers about 200 bytes, whatever it is given.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  annotations: { readOnlyHint: true, idempotentHint: true },
};

const results: Readonly<Record<string, unknown>> = {
  'tools/list': { tools: [echo] },
  'resources/list': { resources: [] },
  'prompts/list': { prompts: [] },
  ping: {},
};

const content = `"content":[{"type":"text","text":"${'The quick brown fox jumps. '.repeat(5)}"}]`;
const callHead: Readonly<Record<Era, string>> = {
  legacy: `{"result":{${content}},"jsonrpc":"2.0","id":`,
  modern: `{"result":{${content},"resultType":"complete"},"jsonrpc":"2.0","id":`,
};
const discovered = {
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  serverInfo: { name: 'bench', version: '1.0.0' },
  resultType: 'complete',
  ttlMs: 0,
  cacheScope: 'private',
};

/** The fields of a parsed message that the backends need. */
export interface Incoming {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: { readonly protocolVersion?: string };
}

/** The era of a backend: with a handshake, or without. */
export type Era = 'legacy' | 'modern';

/** The text of the answer in the key order of the TypeScript SDK; undefined for a message that is not a request. */
export function answerTo({ id, method, params }: Incoming, era: Era = 'legacy'): string | undefined {
  if (id === undefined || method === undefined) return undefined;
  const idText = JSON.stringify(id);
  if (method === 'tools/call') return `${callHead[era]}${idText}}`;
  const result = greetingTo(method, params?.protocolVersion, era) ?? results[method];
  return result === undefined
    ? `{"jsonrpc":"2.0","id":${idText},"error":{"code":-32601,"message":"Method not found"}}`
    : `{"result":${JSON.stringify(result)},"jsonrpc":"2.0","id":${idText}}`;
}

/** A server of one era does not know the greeting of the other. */
function greetingTo(method: string, protocolVersion: string | undefined, era: Era): unknown {
  if (era === 'modern') return method === 'server/discover' ? discovered : undefined;
  return method === 'initialize' ? initialized(protocolVersion) : undefined;
}

function initialized(protocolVersion = '2025-11-25'): unknown {
  const known = protocolVersion <= '2025-11-25';
  return {
    protocolVersion: known ? protocolVersion : '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1.0.0' },
  };
}
