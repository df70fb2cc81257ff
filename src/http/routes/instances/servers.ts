// The instances of all templates as servers, with an id that is unique in the registry; and calls of a tool
// of one server, without balancing and failover: a result that is an error becomes an error answer.

import Type from 'typebox';
import { TemplateId } from '../../../domain/accounts/input-schemas.ts';
import {
  invalidToolArguments,
  refusedArguments,
  toolExecutionFailed,
} from '../../../domain/calls/answer-errors.ts';
import { parsedResult } from '../../../domain/calls/parsed-result.ts';
import { atInstance, type GatewayError } from '../../../domain/errors/errors.ts';
import { isJsonObject, type JsonText } from '../../../domain/json/json.ts';
import { fieldIn } from '../../../domain/json/json-fields.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { whenKnown } from '../../../domain/time/when-known.ts';
import type { Server } from '../../../gateway/gateway-types.ts';
import { knownAtPeers, ListedServer, recordWith, SERVER_LIST } from '../../all-nodes/instances.ts';
import { checkedCommand } from '../../callers/command-check.ts';
import { requireRightTo, visibleServer, visibleServers } from '../../callers/visible.ts';
import { InstanceRecord } from '../../records/instance-record.ts';
import { anyObject, closed, LOCATION, number, rounded, text } from '../../records/schemas.ts';
import { InstanceMetadata, ServerConfig, serverInput } from '../../records/server-input.ts';
import { resultReply } from '../../replies/exchange-reply.ts';
import { PAGE_HEADERS, PAGE_QUERY, PARTIAL_HEADER, pagedList } from '../../replies/paged-list.ts';
import { json, located, noContent, type Reply, withResult } from '../../replies/reply.ts';
import { defineRoute, FROM_BACKEND, type HttpRoute } from '../../routing/route.ts';
import { ServerParams } from '../../routing/route-params.ts';
import { REGISTRATION_ERRORS, registeredRecord, registerInstance, WaitQuery } from './registration.ts';

const NewServerBody = closed({
  template_name: TemplateId,
  instance_metadata: InstanceMetadata,
  config: Type.Optional(ServerConfig),
});

const ListQuery = closed({
  include_health: Type.Optional(Type.Boolean()),
  ...PAGE_QUERY,
});

const idOf = ({ definition }: Server): string => definition.serverId;

export const serverRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/servers', {
    summary: 'List all servers, by their ids',
    scope: 'gateway:read',
    isForwarded: true,
    request: { query: ListQuery },
    errors: ['INVALID_CURSOR'],
    answers: {
      200: {
        description: 'All servers, or one page of `limit`; see `X-Total-Count` and `X-Next-Cursor`',
        body: Type.Array(ListedServer),
        headers: { ...PAGE_HEADERS, ...PARTIAL_HEADER },
      },
    },
    handler: async ({ query, principal }, { gateway, scheduler, otherMembers }) => {
      const { include_health: includesHealth = false } = query;
      const servers = await visibleServers(gateway, principal, scheduler);
      servers.sort((left, right) => (idOf(left) < idOf(right) ? -1 : 1));
      return whenKnown(knownAtPeers(gateway, principal, otherMembers), (known) =>
        pagedList(
          SERVER_LIST,
          {
            items: servers,
            idOf,
            read: (page) => page.map((server) => recordWith(known, server, principal, includesHealth)),
            partial: known.partial,
          },
          query,
          scheduler,
        ),
      );
    },
  }),
  defineRoute('POST', '/servers', {
    summary: 'Register a server of a template',
    scope: 'gateway:write',
    request: { query: WaitQuery, body: NewServerBody },
    answers: {
      201: {
        description: 'Registered; it starts, and is healthy when `status` says so',
        body: InstanceRecord,
        headers: LOCATION,
      },
    },
    errors: REGISTRATION_ERRORS,
    handler: async ({ query, body, principal, request }, services) => {
      const { gateway, definitions } = services;
      const { template_name: template, instance_metadata: metadata, config = {} } = body;
      requireRightTo(principal, template);
      const wanted = serverInput(template, config, definitions.get(template));
      const instance = checkedCommand({ template, instance: wanted, principal, request }, services);
      const input = metadata === undefined ? instance : { ...instance, metadata };
      const wantedServer = { template, instance: input, locate: locationIn };
      const { definition } = await registerInstance(wantedServer, query, principal, gateway);
      const record = registeredRecord(gateway.server(definition.serverId), principal);
      return located(201, `/servers/${definition.serverId}`, record);
    },
  }),
  defineRoute('GET', '/servers/:server_id', {
    summary: 'One server, by its id',
    scope: 'gateway:read',
    request: { params: ServerParams },
    answers: { 200: { description: 'The server as it is now', body: InstanceRecord } },
    handler: ({ params, principal }, { gateway, otherMembers }) => {
      const server = visibleServer(gateway, principal, params.server_id);
      return whenKnown(knownAtPeers(gateway, principal, otherMembers), (known) =>
        json(200, recordWith(known, server, principal)),
      );
    },
  }),
  defineRoute('DELETE', '/servers/:server_id', {
    summary: 'Deregister a server; its running calls may finish',
    scope: 'gateway:write',
    request: { params: ServerParams },
    answers: { 204: { description: 'It gets no more calls and is no longer stored' } },
    handler: async ({ params, principal }, { gateway }) => {
      const { template, id } = visibleServer(gateway, principal, params.server_id).definition;
      await gateway.deregister(template, id);
      return noContent();
    },
  }),
];

/** Maps a location in `{ instance }` to one in the body of `POST /servers`. */
function locationIn([source = '', instance, ...rest]: readonly (string | number)[]): (string | number)[] {
  if (instance !== 'instance') return [source, ...(instance === undefined ? [] : [instance]), ...rest];
  return rest[0] === 'metadata'
    ? [source, 'instance_metadata', ...rest.slice(1)]
    : [source, 'config', ...rest];
}

const CallServerToolBody = closed({
  server_id: Type.String({ minLength: 1, examples: ['everything-1'] }),
  tool_name: Type.String({ minLength: 1, examples: ['echo'] }),
  arguments: Type.Optional(anyObject({ message: 'hello' })),
});

const ServerToolResult = Type.Object({
  result: anyObject({ content: [{ type: 'text', text: 'Echo: hello' }] }),
  server_id: text('everything-1'),
  tool_name: text('echo'),
  execution_time_ms: number(12.5),
});

export const serverToolRoutes: readonly HttpRoute[] = [
  defineRoute('POST', '/tools/call', {
    summary: 'Call a tool of one server',
    scope: 'tools:call',
    asksServers: true,
    changesNothing: true,
    bodyKind: 'call',
    request: { body: CallServerToolBody },
    answers: { 200: { description: 'The MCP result, and how long it took', body: ServerToolResult } },
    errors: [...FROM_BACKEND, 'SERVER_NOT_FOUND', 'TOOL_NOT_FOUND', 'INVALID_TOOL_ARGUMENTS'],
    handler: ({ body, fields, principal, request }, { gateway, clock }) => {
      const { server_id, tool_name } = body;
      const { template, id: instanceId } = visibleServer(gateway, principal, server_id).definition;
      const call = {
        method: 'tools/call',
        params: { name: tool_name, arguments: fields.arguments ?? {} },
      };
      const startMs = clock.now();
      const replyOf = (result: JsonText): Reply => {
        const failure = failureOf(tool_name, result);
        if (failure !== undefined) throw atInstance(failure, instanceId);
        const execution_time_ms = rounded(clock.now() - startMs, 3);
        return withResult(200, { server_id, tool_name, execution_time_ms }, result, { instanceId });
      };
      return resultReply({ gateway, template, instanceId }, call, request, replyOf);
    },
  }),
];

function failureOf(tool: string, result: JsonText): GatewayError | undefined {
  if (fieldIn(result.bytes, 'isError')?.equals(TRUE) !== true) return undefined;
  // A refusal of arguments is a short text.
  const isSmall = result.bytes.length <= LIMITS.inspectedResultBytes;
  const value = isSmall ? parsedResult(result) : undefined;
  const refused = isJsonObject(value) ? refusedArguments(value) : undefined;
  return refused === undefined ? toolExecutionFailed(tool, { result }) : invalidToolArguments(tool, refused);
}

const TRUE = Buffer.from('true');
