// Sets up a target: a gateway as a program, started as a user would, with instances of the fixture registered through its API.
// It also removes all of them.

import * as assert from 'uvu/assert';
import { everythingProgram } from '../fixtures/everything-server.ts';
import { type Caller, caller } from '../helpers/clients/caller.ts';
import { type InstanceBody, register } from '../helpers/programs/mcp-program.ts';
import { Program } from '../helpers/programs/program.ts';
import { QUICK_START, startFixture } from './children.ts';
import type { Door, Target } from './targets.ts';

const template = 'everything';
const view = 'all-of-everything';

/** Above the gateway's grace time for calls in flight. */
const stopMs = 30_000;

/** An endpoint to run suites against, or a gateway. The caller closes it. */
export interface Endpoint {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts a gateway without anything behind it. Names at `/mcp` are those of the fixture, for which the suites ask. */
export async function openGateway(): Promise<Endpoint> {
  // Without the watch over its answers: other specs check their form.
  const gateway = new Program(['gateway', 'start', '--port', '0', '--aggregate-names', 'bare'], {
    env: { NODE_OPTIONS: '' },
  });
  const close = (): Promise<void> => endGateway(gateway);
  try {
    return { url: await gateway.url(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A target with the address of each of its doors. The caller closes it. */
export interface OpenTarget {
  readonly doors: Readonly<Record<Door, string>>;
  close(): Promise<void>;
}

/** Starts gateway and instances; resolves once all of them are healthy. */
export async function openTarget(target: Target): Promise<OpenTarget> {
  const closing: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const step of closing.splice(0)) await step(); // the gateway first, while its backends still answer
  };
  try {
    const gateway = await openGateway();
    closing.push(gateway.close);
    const { url } = gateway;
    for (let number = 1; number <= target.instances; number += 1) {
      const name = `everything-${number}`;
      await register(caller(url), template, [await instanceOf(target, name, closing)]);
    }
    await makeView(caller(url));
    const doors = {
      template: `${url}/mcp/${template}`,
      aggregate: `${url}/mcp`,
      view: `${url}/mcp/${view}`,
    };
    return { doors, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The registration of one instance. A server with an endpoint is started first. */
async function instanceOf(
  { era, transport }: Target,
  name: string,
  closing: (() => Promise<void>)[],
): Promise<InstanceBody> {
  // A check waits 600 ms for a call that needs a new process.
  if (transport === 'stdio') return { id: name, ...everythingProgram({ name, era }), env_vars: QUICK_START };
  const fixture = await startFixture({ name, era });
  closing.push(fixture.stop);
  return { id: name, endpoint: fixture.url };
}

/** A view of everything that the template has. */
async function makeView(call: Caller): Promise<void> {
  const made = await call(`PUT /gateway/views/${view}`, { from: [{ template }] });
  assert.is(made.status, 201, JSON.stringify(made.body));
}

async function endGateway(gateway: Program): Promise<void> {
  gateway.signal('SIGTERM');
  try {
    await gateway.end(stopMs);
  } finally {
    await gateway.remove();
  }
}
