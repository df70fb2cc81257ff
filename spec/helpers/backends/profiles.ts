// Samples for specs of instances and their clients: clients of both eras, what backends declare, definitions and calls.

import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { ClientProfile } from '../../../src/domain/mcp/client.ts';
import { type Handshake, META, type Tool } from '../../../src/domain/mcp/mcp.ts';
import { instanceDefinition } from '../../conformance/transport.ts';

export const WRITE: Tool = { name: 'write' };
export const READ: Tool = { name: 'read', annotations: { readOnlyHint: true } };

/** The profile of a legacy client that supports no server requests. */
export const PLAIN: ClientProfile = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'plain', version: '1' },
};
/** The capabilities of a client, as large as they may be. */
export const LARGE: JsonObject = { experimental: { large: Array(900).fill({}) } };
/** The profile of a legacy client that supports sampling. */
export const ASKABLE: ClientProfile = { ...PLAIN, capabilities: { sampling: {} } };

/** A legacy server with all capabilities. */
export const FULL: Partial<Handshake> = {
  capabilities: { tools: {}, logging: {}, resources: { subscribe: true, listChanged: true } },
};
export const MODERN: Partial<Handshake> = { era: 'modern', protocolVersion: '2026-07-28' };
export const FULL_MODERN: Partial<Handshake> = { ...FULL, ...MODERN };
export const HTTP: Partial<InstanceDefinition> = { transport: 'http', endpoint: 'http://127.0.0.1:9/mcp' };
export const STDIO: Partial<InstanceDefinition> = { transport: 'stdio', command: 'serve' };

/** The request that calls a tool. */
export function toolCall(tool: string): ExchangeRequest {
  return { method: 'tools/call', params: { name: tool, arguments: {} } };
}

/** The definition of an in-process instance of template `t`. */
export function definition(id: string, fields: Partial<InstanceDefinition> = {}): InstanceDefinition {
  return instanceDefinition({ id, serverId: id, template: 't', transport: 'in-process', ...fields });
}

/** A client of the modern era. */
export function modernProfile(capabilities: JsonObject = {}): ClientProfile {
  return { protocolVersion: '2026-07-28', capabilities, clientInfo: { name: 'client', version: '1' } };
}

/** A call with the `_meta` of the modern era and these additional fields. */
export function modernCall(meta: JsonObject = {}): ExchangeRequest {
  const { params } = toolCall('write');
  const envelope = {
    [META.protocolVersion]: '2026-07-28',
    [META.clientCapabilities]: {},
    [META.clientInfo]: { name: 'client', version: '1' },
  };
  return { method: 'tools/call', params: { ...params, _meta: { ...envelope, ...meta } } };
}
