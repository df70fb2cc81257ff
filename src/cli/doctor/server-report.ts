// Names the faults of one server: of a template at a gateway, which examines it, or of a URL or a command, with a gateway of this
// process alone that keeps nothing.

import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceInput, InstanceSnapshot } from '../../domain/instances/instance.ts';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import { definedFields } from '../../domain/json/json.ts';
import { type CommandInput, pairsOf } from '../command.ts';
import { UsageError } from '../failures.ts';
import { elementsOf, fields, objectsOf } from '../remote/answers.ts';
import { requireGateway } from '../remote/find-gateway.ts';
import { ofTemplate } from '../remote/similar-names.ts';
import type { Terminal } from '../terminal.ts';
import { isServerUrl } from './server-url.ts';

export interface ServerReport {
  readonly ok: boolean;
  readonly instances: readonly {
    readonly id: string;
    readonly era: string | null;
    readonly lists: Readonly<Record<string, number>>;
    readonly findings: readonly {
      readonly code: string;
      readonly message: string;
      readonly remedy: string;
    }[];
  }[];
}

/** The number of openings that fail in a row: the second one omits the features that the server did not know. */
const FAILURES = 2;
const LOOK_MS = 100;

/** The longest wait for an examination, in ms: a gateway examines its servers within the limits of its lists. */
const EXAMINED_MS = 300_000;

/** Examines the server that the input names. Throws UsageError and CommandFailure. */
export async function examineNamed(
  input: CommandInput,
  terminal: Terminal,
  progress: (text: string) => void,
): Promise<ServerReport> {
  const [name, more] = input.positionals;
  const { program } = input;
  if (more !== undefined || (name !== undefined && program !== undefined))
    throw new UsageError('name one server: a template, a URL, or a command after --');
  if (program !== undefined) {
    const [command, ...args] = program;
    if (command === undefined) throw new UsageError('a command follows --');
    return examineHere(
      { command, args, working_dir: terminal.folder, force: true },
      input,
      terminal,
      progress,
    );
  }
  if (name === undefined) throw new UsageError('name a server');
  if (isServerUrl(name)) {
    const headers = Object.fromEntries(pairsOf('--header', input.texts('header')));
    return examineHere({ endpoint: name, headers }, input, terminal, progress);
  }
  const gateway = await requireGateway(input, terminal);
  const path = `/gateway/templates/${encodeURIComponent(name)}/doctor`;
  const request = { method: 'POST', timeoutMs: EXAMINED_MS } as const;
  const answer = fields(await ofTemplate(gateway, name, () => gateway.request(path, request)));
  return {
    ok: answer.ok === true,
    instances: objectsOf(answer.instances).map(({ id, era, lists, findings }) => ({
      id: String(id),
      era: typeof era === 'string' ? era : null,
      lists: Object.fromEntries(Object.entries(fields(lists)).map(([list, count]) => [list, Number(count)])),
      findings: elementsOf(findings).map((each) => {
        const { code, message, remedy = '', ...rest } = fields(each);
        return { ...rest, code: String(code), message: String(message), remedy: String(remedy) };
      }),
    })),
  };
}

async function examineHere(
  server: InstanceInput,
  input: CommandInput,
  { env, columns, note }: Terminal,
  progress: (text: string) => void,
): Promise<ServerReport> {
  const waitMs = 1_000 * (input.number('wait', { minimum: 1, maximum: 600 }) ?? 60);
  const [
    { createGateway },
    { examineTemplate },
    { remedyOf },
    { systemClock },
    { TaskScheduler },
    { GatewayError },
  ] = await Promise.all([
    import('../../gateway/gateway.ts'),
    import('../../gateway/doctor/server-doctor.ts'),
    import('../../gateway/doctor/faults.ts'),
    import('../../domain/time/clock.ts'),
    import('../../domain/time/task-scheduler.ts'),
    import('../../domain/errors/errors.ts'),
  ]);
  // A program gets the variables that it has in this shell. The addresses are those of the caller.
  const passEnv = Object.keys(env).filter((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  const gateway = await createGateway({ programs: { passEnv }, deniedNetworks: [] });
  try {
    await gateway.register('server', { ...server, id: 'server' });
    // On a terminal a spinner shows the wait.
    if (columns === undefined) note(`waiting up to ${waitMs / 1_000} s until the server is open`);
    const isOpen = await opens(() => gateway.instance('server', 'server').snapshot, waitMs, progress);
    progress('examining');
    const scheduler = new TaskScheduler();
    const options = { clock: systemClock, scheduler, deniedNetworks: [] };
    const [examined] = await examineTemplate(gateway, 'server', options);
    const { era = null, lists = {}, findings: seen = [] } = examined ?? {};
    const findings = [...seen];
    if (runsProgram(server)) {
      await gateway.close({ graceMs: 0 }); // the program may be there once only
      const known = new Set(findings.map(({ code }) => code));
      const plain = await probedAlone(server, passEnv, !isOpen);
      findings.push(...plain.filter(({ code }) => !known.has(code)));
    }
    const explained = findings.map((finding) => ({ ...finding, remedy: remedyOf(finding.code) }));
    const id = server.endpoint ?? [server.command, ...(server.args ?? [])].join(' ');
    return { ok: findings.length === 0, instances: [{ id, era, lists, findings: explained }] };
  } catch (thrown) {
    if (thrown instanceof GatewayError) throw new UsageError(thrown.message, { cause: thrown });
    throw thrown;
  } finally {
    await gateway.close({ graceMs: 0 });
  }
}

/** Waits until the server is open, or has failed to. True when it is open. */
async function opens(
  snapshot: () => Pick<InstanceSnapshot, 'healthy' | 'consecutiveFailures'>,
  waitMs: number,
  progress: (text: string) => void,
): Promise<boolean> {
  const startMs = performance.now();
  for (let nowMs = startMs; nowMs < startMs + waitMs; nowMs = performance.now()) {
    if (snapshot().healthy || snapshot().consecutiveFailures >= FAILURES) break;
    progress(`waiting until it is open: ${Math.round((nowMs - startMs) / 1_000)} of ${waitMs / 1_000} s`);
    await sleep(LOOK_MS);
  }
  return snapshot().healthy;
}

/** The faults that a program shows by itself, with no variables of its own. */
async function probedAlone(
  { command, args = [], working_dir: workingDir }: InstanceInput & { readonly command: string },
  passEnv: readonly string[],
  isSilent: boolean,
) {
  const { probeProgram } = await import('../../gateway/doctor/program-probe.ts');
  const program = { command, args, ...definedFields({ workingDir }), env: {}, secretEnv: [] };
  return probeProgram(program, passEnv, { isSilent });
}
