// How an instance looks to API clients: what was registered, and what is true of it now.
// Source: decisions, "Surface A bodies", instance record; ADR 6.

import Type, { type Static } from 'typebox';
import { type InstanceDefinition, type InstanceSnapshot, TRANSPORT_KINDS } from '../../domain/instance.ts';

const NullableText = Type.Union([Type.String(), Type.Null()]);
const Masked = Type.Record(Type.String(), Type.Literal('***'));

export const INSTANCE_STATES = ['starting', 'healthy', 'unhealthy', 'draining', 'stopped'] as const;

/** Schema of the instance record. */
export const InstanceRecord = Type.Object({
  id: Type.String(),
  server_id: Type.String(),
  template_name: Type.String(),
  transport: Type.Enum([...TRANSPORT_KINDS]),
  endpoint: NullableText,
  command: NullableText,
  args: Type.Array(Type.String()),
  working_dir: NullableText,
  env_vars: Masked,
  headers: Masked,
  weight: Type.Integer(),
  metadata: Type.Record(Type.String(), Type.Unknown()),
  source: Type.Enum(['api', 'file', 'sync']),
  node_id: NullableText,
  status: Type.Enum(['healthy', 'unhealthy']),
  healthy: Type.Boolean(),
  state: Type.Enum([...INSTANCE_STATES]),
  in_flight: Type.Integer(),
  reason: NullableText,
  restarts: Type.Integer(),
  stderr: Type.Array(Type.String()),
  created_at: Type.String(),
  updated_at: Type.String(),
  last_check: NullableText,
});
export type InstanceRecord = Static<typeof InstanceRecord>;

/** Makes the record. Values of `env_vars` and `headers` are masked: they are where secrets are kept. */
export function instanceRecord(definition: InstanceDefinition, snapshot: InstanceSnapshot): InstanceRecord {
  return {
    id: definition.id,
    server_id: definition.serverId,
    template_name: definition.template,
    transport: definition.transport,
    endpoint: definition.endpoint ?? null,
    command: definition.command ?? null,
    args: [...definition.args],
    working_dir: definition.workingDir ?? null,
    env_vars: masked(definition.env),
    headers: masked(definition.headers),
    weight: definition.weight,
    metadata: { ...definition.metadata },
    source: definition.source,
    // Which node of several runs it; there is one node so far.
    node_id: null,
    status: snapshot.healthy ? 'healthy' : 'unhealthy',
    healthy: snapshot.healthy,
    state: snapshot.state,
    in_flight: snapshot.inFlight,
    reason: snapshot.reason,
    restarts: snapshot.restarts,
    stderr: [...snapshot.stderr],
    created_at: definition.createdAt,
    updated_at: definition.updatedAt,
    last_check: snapshot.lastCheck,
  };
}

function masked(values: Readonly<Record<string, string>>): Record<string, '***'> {
  return Object.fromEntries(Object.keys(values).map((name) => [name, '***'] as const));
}
