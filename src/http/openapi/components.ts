// Shared parts of the API description: named schemas, headers and security schemes. Named schemas are recognised by their content.

import type { TSchema } from 'typebox';
import { SCOPES, type Scope } from '../../domain/account.ts';
import { InstanceInput } from '../../domain/instance.ts';
import { LoadBalancerChange, LoadBalancerSettings } from '../../domain/template.ts';
import { ErrorBody } from '../error-reply.ts';
import { ApiKeyRecord, UserRecord } from '../routes/accounts.ts';
import { AuditRecord } from '../routes/audit.ts';
import { GatewayHealth, ServerHealth, TemplateHealth } from '../routes/health.ts';
import { InstanceRecord } from '../routes/instances.ts';
import { RpcAnswer, RpcRefusal } from '../routes/mcp-endpoint.ts';
import { ToolList } from '../routes/mcp-requests.ts';
import { StatisticsView } from '../routes/statistics.ts';
import { LoadBalancerView, RegistryView } from '../routes/templates.ts';

export const NAMED_SCHEMAS: Readonly<Record<string, TSchema>> = {
  ApiKeyRecord,
  AuditEntry: AuditRecord,
  ErrorBody,
  GatewayHealth,
  GatewayStatistics: StatisticsView,
  InstanceInput,
  InstanceRecord,
  LoadBalancer: LoadBalancerView,
  LoadBalancerChange,
  LoadBalancerSettings,
  Registry: RegistryView,
  RpcAnswer,
  RpcRefusal,
  ServerHealth,
  TemplateHealth,
  ToolList,
  UserRecord,
};

const SCOPE_MEANINGS: Readonly<Record<Scope, string>> = {
  'gateway:read': 'Read status and configuration of the gateway',
  'gateway:write': 'Change the configuration and manage servers',
  'tools:call': 'Execute tools on MCP servers',
  admin: 'Everything, users and keys included',
};

/** Each is sufficient. The form of an interactive page uses `login`, which gives a token for `bearer`. */
export const SECURITY_SCHEMES = {
  login: {
    type: 'oauth2',
    description: 'User name and password, for which the page gets a token.',
    flows: {
      password: {
        tokenUrl: 'auth/login',
        scopes: Object.fromEntries(SCOPES.map((scope) => [scope, SCOPE_MEANINGS[scope]])),
      },
    },
  },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'A token of `POST /auth/login`, or an API key.',
  },
  apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'An API key.' },
} as const;

const count = { type: 'integer', minimum: 0 } as const;

/** Headers of answers, by name. `required`: the answer is invalid without it. */
export const HEADERS = {
  'X-Request-ID': {
    description: 'Id of this request in the log. A valid id of the caller is kept.',
    required: true,
    schema: { type: 'string', examples: ['7f3c2a51-6f0e-4d6b-9a63-0b7a2f1c9d44'] },
  },
  'X-Instance-ID': {
    description:
      'The instance that answered; of a stream that began before, the one that worked on the call.',
    schema: { type: 'string', examples: ['everything-1'] },
  },
  'X-RateLimit-Limit': {
    description: 'Requests of one window. Present when the caller has a limit, like the next two.',
    schema: { ...count, examples: [1000] },
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the window.',
    schema: { ...count, examples: [987] },
  },
  'X-RateLimit-Reset': {
    description: 'When the window ends, as Unix time in seconds.',
    schema: { ...count, examples: [1_800_000_000] },
  },
  'Retry-After': {
    description: 'Seconds until another attempt makes sense. Only when nothing was done for this request.',
    schema: { ...count, examples: [2] },
  },
  'WWW-Authenticate': {
    description: 'Ways to authenticate.',
    required: true,
    schema: { type: 'string', examples: ['Bearer'] },
  },
} as const;

export type HeaderName = keyof typeof HEADERS;
