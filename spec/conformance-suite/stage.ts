// Sets up what a target asks for: a gateway as a program, started as a user would, with instances of the fixture
// registered through its API. It takes everything down again.

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { everythingProgram } from '../fixtures/everything-server.ts';
import { Program } from '../helpers/program.ts';
import { startFixture } from './children.ts';
import type { Target } from './targets.ts';

const template = 'everything';
const registerMs = 30_000;
const healthySeconds = 20;
/** Over the grace of the gateway for calls in flight. */
const stopMs = 30_000;

/** A check waits 600 ms for a call that needs a new process: with its compiled code kept one starts in time. */
const QUICK_START = { NODE_COMPILE_CACHE: join(tmpdir(), 'stagedoor-compile-cache') };

/** An endpoint to run suites against. Close it. */
export interface Endpoint {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts gateway and instances; resolves once all of them are healthy. */
export async function openTarget(target: Target): Promise<Endpoint> {
  const closing: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const step of closing.splice(0)) await step(); // the gateway first, while its backends still answer
  };
  try {
    // Without the watch of its answers: what they look like is the business of other specs.
    const gateway = new Program(['gateway', 'start', '--port', '0'], { env: { NODE_OPTIONS: '' } });
    closing.push(() => endGateway(gateway));
    const url = await gateway.url();
    for (let number = 1; number <= target.instances; number += 1) {
      const name = `everything-${number}`;
      await register(url, { id: name, ...(await instanceOf(target, name, closing)) });
    }
    return { url: `${url}/mcp/${template}`, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** How the gateway is told to reach one instance. One that listens is started for it. */
async function instanceOf(
  { era, transport }: Target,
  name: string,
  closing: (() => Promise<void>)[],
): Promise<object> {
  if (transport === 'stdio') return { ...everythingProgram({ name, era }), env_vars: QUICK_START };
  const fixture = await startFixture({ name, era });
  closing.push(fixture.end);
  return { endpoint: fixture.url };
}

async function register(url: string, instance: object): Promise<void> {
  const response = await fetch(`${url}/gateway/register?wait=${healthySeconds}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ template_name: template, instance }),
    signal: AbortSignal.timeout(registerMs),
  });
  const body = Object(await response.json());
  if (response.status === 201 && body.healthy === true) return;
  throw new Error(`not registered: ${response.status} ${JSON.stringify(body).slice(0, 500)}`);
}

async function endGateway(gateway: Program): Promise<void> {
  gateway.signal('SIGTERM');
  try {
    await gateway.end(stopMs);
  } finally {
    await gateway.remove();
  }
}
