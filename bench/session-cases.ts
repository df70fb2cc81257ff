// The cases of the MCP endpoint: calls in sessions of legacy clients, calls of modern clients, and new sessions.

import type { BenchmarkCase } from './cases.ts';
import type { StartedGateway } from './gateway.ts';
import { initializeBody } from './open-session.ts';

/** Many more sessions than in real life are opened here; those that nobody uses end soon. */
export const SESSION_ENVIRONMENT: Readonly<Record<string, string>> = {
  GATEWAY_AUTH_ENABLED: 'false',
  MCP_GATEWAY_MAX_SESSIONS: '1000000',
  MCP_GATEWAY_SESSION_IDLE_SECONDS: '5',
};

/** `parameters` are those of the tool call. */
export function sessionCases(
  { origin, pid }: StartedGateway,
  parameters: { readonly name: string },
): BenchmarkCase[] {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
  const legacy = { body: JSON.stringify({ ...call, params: parameters }), sessionBody: initializeBody, pid };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  };
  const modern = {
    body: JSON.stringify({ ...call, params: { ...parameters, _meta: meta } }),
    headers: {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': parameters.name,
    },
    pid,
  };
  return [
    {
      letter: 'i',
      title: 'legacy sessions, three HTTP instances',
      url: `${origin}/mcp/everything`,
      ...legacy,
    },
    { letter: 'j', title: 'legacy sessions, one stdio process', url: `${origin}/mcp/pipe`, ...legacy },
    { letter: 'k', title: 'modern clients, three HTTP instances', url: `${origin}/mcp/modern`, ...modern },
    { letter: 'l', title: 'modern clients, one stdio process', url: `${origin}/mcp/modern-pipe`, ...modern },
    {
      letter: 'm',
      title: 'new legacy sessions, one stdio process',
      url: `${origin}/mcp/pipe`,
      body: initializeBody,
      pid,
    },
  ];
}
