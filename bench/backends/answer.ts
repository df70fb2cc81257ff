// What both fast backends answer. Small on purpose: the benchmark measures what stands in front of them.
// Framing and transport are in http.ts and stdio.ts.

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

const callHead = `{"result":{"content":[{"type":"text","text":"${'The quick brown fox jumps. '.repeat(5)}"}]},"jsonrpc":"2.0","id":`;

/** A parsed message as far as the backends care. */
export interface Incoming {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: { readonly protocolVersion?: string };
}

/** The text of the answer in the key order of the TypeScript SDK, or undefined when nothing was asked. */
export function answerTo({ id, method, params }: Incoming): string | undefined {
  if (id === undefined || method === undefined) return undefined;
  const idText = JSON.stringify(id);
  if (method === 'tools/call') return `${callHead}${idText}}`;
  const result = method === 'initialize' ? initialized(params?.protocolVersion) : results[method];
  return result === undefined
    ? `{"jsonrpc":"2.0","id":${idText},"error":{"code":-32601,"message":"Method not found"}}`
    : `{"result":${JSON.stringify(result)},"jsonrpc":"2.0","id":${idText}}`;
}

function initialized(protocolVersion = '2025-11-25'): unknown {
  const known = protocolVersion <= '2025-11-25';
  return {
    protocolVersion: known ? protocolVersion : '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1.0.0' },
  };
}
