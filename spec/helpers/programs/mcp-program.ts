// Shared by the system specs of the MCP endpoint: a real gateway with instances of the everything server, raw clients and
// an administrator.

import * as assert from 'uvu/assert';
import { type Caller, caller, tokenOf } from '../clients/caller.ts';
import { Wire } from '../clients/mcp-wire.ts';
import { Program, type ProgramOptions } from './program.ts';

/** Longest wait for an instance to be healthy, in seconds. */
const waitSeconds = 20;

/** The body of a registration. */
export type InstanceBody = { readonly id: string } & (
  | { readonly endpoint: string; readonly auth?: object }
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly env_vars?: Readonly<Record<string, string>>;
    }
);

/** A gateway and its clients. */
export interface McpHarness {
  readonly program: Program;
  readonly url: string;
  readonly wire: Wire;
  /** Sends no credentials; an administrator when authentication is disabled. */
  readonly admin: Caller;
  /** Closes the sockets of the clients, then stops the gateway and checks that it leaves nothing behind. */
  remove(): Promise<void>;
}

/** Several gateways may start on few cores. */
const startsWithinMs = 45_000;

export interface HarnessOptions extends ProgramOptions {
  /** Default: a free one. */
  readonly port?: number;
}

/** Starts a gateway. */
export async function startHarness({ port = 0, ...options }: HarnessOptions = {}): Promise<McpHarness> {
  const program = new Program(['gateway', 'start', '--port', String(port)], options);
  try {
    const url = await program.url(startsWithinMs);
    const wire = new Wire(url);
    return {
      program,
      url,
      wire,
      admin: caller(url),
      remove: async () => {
        wire.close();
        await program.remove();
      },
    };
  } catch (error) {
    await program.remove();
    throw error;
  }
}

/** The password of `admin` when authentication is enabled. */
export const PASSWORD = 'correct horse battery';
/** Settings that enable authentication. */
export const GUARDED = { GATEWAY_AUTH_ENABLED: 'true', GATEWAY_ADMIN_PASSWORD: PASSWORD } as const;

/** Starts a gateway with authentication; `admin` is its administrator. */
export async function startGuarded({ env, ...options }: HarnessOptions = {}): Promise<McpHarness> {
  const harness = await startHarness({ ...options, env: { ...GUARDED, ...env } });
  return { ...harness, admin: caller(harness.url, await tokenOf(harness.url, 'admin', PASSWORD)) };
}

/** Registers instances and waits until each is healthy. `settings` are the load balancer's. */
export async function register(
  admin: Caller,
  template: string,
  instances: readonly InstanceBody[],
  settings: object = {},
): Promise<void> {
  await Promise.all(
    instances.map(async (instance) => {
      const body = { template_name: template, instance };
      const made = await admin(`POST /gateway/register?wait=${waitSeconds}`, body);
      assert.is(made.status, 201, JSON.stringify(made.body));
      assert.is(Object(made.body).healthy, true, `${template}/${instance.id}: ${JSON.stringify(made.body)}`);
    }),
  );
  if (Object.keys(settings).length > 0) await change(admin, template, settings);
}

/** Changes the load balancer settings of a template. */
export async function change(admin: Caller, template: string, settings: object): Promise<void> {
  const { status, body } = await admin(`PATCH /gateway/templates/${template}`, settings);
  assert.is(status, 200, JSON.stringify(body));
}
