// How an instance looks to API clients: what was registered, and what is true of it now.
// Source: decisions, "Surface A bodies", instance record; ADR 6.

import Type, { type Static } from 'typebox';
import { mayDo, type Principal } from '../../domain/account.ts';
import { type InstanceSnapshot, TRANSPORT_KINDS } from '../../domain/instance.ts';
import { lastWords } from '../../domain/last-words.ts';
import { cutText } from '../../domain/text.ts';
import type { Server } from '../../gateway-types.ts';
import { NullableEjection, NullableText } from '../schemas.ts';

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
  /** Id of the container in which sync found it; only then. */
  container: Type.Optional(Type.String()),
  /** Only when it is true. */
  force: Type.Optional(Type.Boolean()),
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
  sessions: Type.Integer(),
  own_processes: Type.Integer(),
  pid: Type.Union([Type.Integer(), Type.Null()]),
  own_pids: Type.Array(Type.Object({ pid: Type.Integer(), principal: Type.String() })),
  reason: NullableText,
  warnings: Type.Array(Type.String()),
  ejection: NullableEjection,
  restarts: Type.Integer(),
  stderr: Type.Array(Type.String()),
  created_at: Type.String(),
  updated_at: Type.String(),
  last_check: NullableText,
});
export type InstanceRecord = Static<typeof InstanceRecord>;

/**
 * Makes the record for one viewer. `pid`: the process that its clients share; `own_pids`: those of single clients. Values
 * of `env_vars` and `headers` are masked for everybody: they are where secrets are kept. What tells about the machine (the command, its words and folder, the query of an endpoint, processes, standard
 * error and the reason, which may quote them) is shown to those who may change it.
 */
export function instanceRecord(server: Server, viewer: Principal): InstanceRecord {
  const record = wholeRecord(server);
  if (seesMachine(viewer)) return record;
  const { force, container, ...others } = record;
  const endpoint = record.endpoint?.replace(/\?.*$/s, '') ?? null;
  const hidden = {
    command: null,
    args: [],
    working_dir: null,
    pid: null,
    own_pids: [],
    reason: null,
    stderr: [],
  };
  return { ...others, endpoint, ...hidden };
}

/** True for those who may know how an instance is run. */
export function seesMachine(viewer: Principal): boolean {
  return mayDo(viewer, ['gateway:write']);
}

/** Lines of standard error in a reason, and characters of each; all that are kept are in `stderr`. */
const LINES_IN_REASON = 3;
const CHARACTERS_OF_LINE = 200;

/** Why it is not healthy, with what its program wrote last where it has no session. For those who see the machine only. */
export function fullReason({ reason, era, healthy, stderr }: InstanceSnapshot): string | null {
  if (reason === null || healthy || era !== null) return reason;
  const said = lastWords(stderr, LINES_IN_REASON).map((line) => cutText(line.trim(), CHARACTERS_OF_LINE));
  return said.length === 0 ? reason : `${reason}; it wrote last: ${said.join(' | ')}`;
}

function wholeRecord({ definition, snapshot, clients, warnings = [] }: Server): InstanceRecord {
  return {
    id: definition.id,
    server_id: definition.serverId,
    template_name: definition.template,
    transport: snapshot.foundTransport ?? definition.transport,
    endpoint: definition.endpoint ?? null,
    command: definition.command ?? null,
    args: [...definition.args],
    working_dir: definition.workingDir ?? null,
    ...(definition.container === undefined ? {} : { container: definition.container.id }),
    ...(definition.force === true ? { force: true } : {}),
    env_vars: masked(definition.env),
    headers: masked(definition.headers),
    weight: definition.weight,
    metadata: { ...definition.metadata },
    source: definition.source,
    node_id: definition.nodeId ?? null,
    status: snapshot.healthy ? 'healthy' : 'unhealthy',
    healthy: snapshot.healthy,
    state: snapshot.state,
    in_flight: snapshot.inFlight,
    sessions: clients.sessions,
    own_processes: clients.ownProcesses,
    pid: snapshot.pid,
    own_pids: clients.processes.map(({ pid, principal }) => ({ pid, principal })),
    reason: fullReason(snapshot),
    warnings: [...warnings],
    ejection: snapshot.ejection,
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
