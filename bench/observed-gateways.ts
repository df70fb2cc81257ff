// Two gateways with the same instances, for the cost of observing them: one with the audit of calls and the log, and one like it
// with open consoles, each of which reads the samples of the load.

import { type Instances, type StartedGateway, startGateway } from './gateway.ts';

export interface ObservedGateways {
  readonly recording: StartedGateway;
  readonly watched: StartedGateway;
  stop(): Promise<void>;
}

const consoles = 50;
/** What a console reads while it shows the overview. */
const eventsPath = '/events?follow=true&type=gateway.sampled,instance,session,template';

export async function startObservedGateways(instances: Instances): Promise<ObservedGateways> {
  const started: StartedGateway[] = [];
  const start = async (): Promise<StartedGateway> => {
    const environment = { GATEWAY_AUTH_ENABLED: 'false', GATEWAY_AUDIT_CALLS: 'true' };
    const gateway = await startGateway(instances, environment, 'info');
    started.push(gateway);
    return gateway;
  };
  const readers = new AbortController();
  const stop = async (): Promise<void> => {
    readers.abort();
    for (const gateway of started) await gateway.stop();
  };
  try {
    const recording = await start();
    const watched = await start();
    await Promise.all(Array.from({ length: consoles }, () => read(watched.origin, readers.signal)));
    return { recording, watched, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Resolves when the stream is open; reads it until it is aborted. */
async function read(origin: string, signal: AbortSignal): Promise<void> {
  const { ok, status, body } = await fetch(`${origin}${eventsPath}`, { signal });
  if (!ok || body === null) throw new Error(`${eventsPath} answered ${status}`);
  const drain = async (): Promise<void> => {
    for await (const _ of body);
  };
  drain().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
