// What the specs of stateless clients need: a fleet of instances of any era and transport, the pool of conversations, and callers of
// several owners. Time is simulated by the spec.

import { setImmediate as turn } from 'node:timers/promises';
import { StatelessClients } from '../../../src/actors/stateless/stateless-clients.ts';
import { StatelessPool } from '../../../src/actors/stateless/stateless-pool.ts';
import type { ClientProfile } from '../../../src/domain/client.ts';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import type { TransportKind } from '../../../src/domain/instance.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { META, type Peer } from '../../../src/domain/mcp.ts';
import type { BalancerPolicy } from '../../../src/domain/policy.ts';
import {
  answers,
  type Caller,
  globalAlarm,
  Harness,
  listen,
  type Script,
  toolCall,
} from '../../helpers/failing-backend.ts';
import type { ScriptedTransport } from '../../helpers/scripted-transport.ts';

export const MODERN: Partial<Peer> = { era: 'modern', protocolVersion: '2026-07-28' };
export const LOGGING: Partial<Peer> = { capabilities: { logging: {} } };

export function profile(capabilities: JsonObject = {}): ClientProfile {
  return { protocolVersion: '2026-07-28', capabilities, clientInfo: { name: 'client', version: '1' } };
}
export const ASKABLE = profile({ elicitation: {} });

/** A call with the `_meta` of the modern era, and more of it. */
export function modernCall(meta: JsonObject = {}): ExchangeRequest {
  const { params } = toolCall('write');
  const envelope = {
    [META.protocolVersion]: '2026-07-28',
    [META.clientCapabilities]: {},
    [META.clientInfo]: { name: 'client', version: '1' },
  };
  return { method: 'tools/call', params: { ...params, _meta: { ...envelope, ...meta } } };
}

export interface Calling {
  readonly owner?: string;
  readonly profile?: ClientProfile;
  readonly instanceId?: string;
}

export class StatelessHarness {
  readonly inner: Harness;
  readonly pool: StatelessPool;
  readonly stateless: StatelessClients;

  constructor(policy: Partial<BalancerPolicy> = {}) {
    this.inner = new Harness(policy);
    const now = () => Date.now();
    this.pool = new StatelessPool();
    const { fleet, dispatcher } = this.inner;
    this.stateless = new StatelessClients({ fleet, dispatcher, pool: this.pool, now, alarm: globalAlarm });
  }

  /** Starts an instance; what its backend answers to, in every conversation, is the script. */
  async add(id: string, transport: TransportKind, script: Script, peer: Partial<Peer> = {}) {
    const answered: Script = (exchange) =>
      exchange.request.method === 'logging/setLevel' ? answers()(exchange) : script(exchange);
    const options = { fields: { transport }, peer: { capabilities: {}, ...peer }, tools: null };
    return this.inner.add(id, answered, options);
  }

  backend(id: string): ScriptedTransport {
    return this.inner.backend(id);
  }
  /** The conversations that were opened with an instance, ended ones included. */
  upstreams(id: string): ScriptedTransport[] {
    return this.backend(id).upstreams;
  }
  /** From now on no conversation is opened with an instance before the returned function was called. */
  freeze(id: string): () => void {
    const backend = this.backend(id);
    const open = backend.openUpstream.bind(backend);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    backend.openUpstream = async (whose, signal) => {
      signal.addEventListener('abort', reject);
      await promise;
      return open(whose, signal);
    };
    return resolve;
  }
  /** Calls of tools that reached an instance in its own conversation, and in each of the others. */
  calls(id: string): number[] {
    return [this.backend(id), ...this.upstreams(id)].map(
      ({ asked }) => asked.filter((method) => method === 'tools/call').length,
    );
  }

  call(
    request: ExchangeRequest,
    { owner = 'ann', profile: declared = profile(), instanceId }: Calling = {},
  ): Caller {
    const options = {
      owner: { id: owner },
      profile: declared,
      ...(instanceId === undefined ? {} : { instanceId }),
    };
    return listen(this.stateless.exchange('t', request, options));
  }

  async close(): Promise<void> {
    await this.pool.close();
    await this.inner.close();
  }
}

/** Everything that can settle has settled, however many promises it goes through. */
export async function settled(): Promise<void> {
  await turn();
  await turn();
}
