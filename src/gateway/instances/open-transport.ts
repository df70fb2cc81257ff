// Opens the transports of instances by the rows of their kinds: decides which program is started, with the environment of its
// template, and with which options. A failure names variables that the program may lack.

import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { DEFAULT_POLICY } from '../../balancing/policy.ts';
import { backendUnavailable, openingCancelled, openingRefused } from '../../domain/errors/backend-errors.ts';
import { GatewayError } from '../../domain/errors/errors.ts';
import { childEnvironment, missingVariables } from '../../domain/instances/command.ts';
import type { RunInContainer } from '../../domain/instances/found-instances.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { runsAnywhere } from '../../domain/nodes/nodes.ts';
import { unlessAborted } from '../../domain/time/clock.ts';
import { FairSlots } from '../../domain/time/fair-slots.ts';
import { GATEWAY_INFO } from '../../domain/version.ts';
import { BackendHandshakes } from '../../net/tls/backend-handshakes.ts';
import { type ProgramOptions, programEnvironment } from '../../programs/child-process.ts';
import type { LeaseReaper } from '../../programs/lease-reaper.ts';
import type { Reaper } from '../../programs/reaper.ts';
import { exposureOf, type ProtectedPath } from '../../templates/command-exposure.ts';
import type { TemplateRules } from '../../templates/definition.ts';
import { launchOf, withTemplateEnvironment } from '../../templates/launch.ts';
import { unmetRequirement } from '../../templates/requirements.ts';
import { loadedKinds } from '../../transports/load-transport.ts';
import type {
  CommandHistory,
  NetworkOptions,
  Open,
  OpeningHistory,
  OpenOptions,
} from '../../transports/open-options.ts';
import type { MemoryBudgets } from '../memory-budgets.ts';
import type { AccountsAtBackends } from './accounts-at-backends.ts';

interface OpenTransportOptions extends Pick<OpenOptions, 'clock' | 'handlers' | 'scheduler'> {
  readonly network: Pick<NetworkOptions, 'isDenied' | 'lookup'>;
  readonly programs?: Pick<ProgramOptions, 'passEnv' | 'user'> & {
    /** Paths that no command may get. Default: none. */
    readonly protectedPaths?: readonly ProtectedPath[];
    readonly reaper?: Reaper | undefined;
    /** Starts and ends the programs that any node may run, where there are other nodes. Default: as the others. */
    readonly leaseReaper?: LeaseReaper | undefined;
  };
  /** Counts what is kept of handshakes, incomplete answers and waiting messages of all instances. Default: not counted. */
  readonly memory?: Pick<MemoryBudgets, 'handshakes' | 'heldAnswers' | 'requestBytes'>;
  /** The definitions of templates. Default: none. */
  readonly definitions?: Pick<ReadonlyMap<string, TemplateRules>, 'get'>;
  /** Accounts at backends that want OAuth. Default: such backends are not opened. */
  readonly backendAccounts?: Pick<AccountsAtBackends, 'openFor' | 'sharedAccount'> | undefined;
  /** Gets the server id of an instance that must not be started here. Default: the opening fails, and nothing else happens. */
  readonly onRefused?: (serverId: string) => void;
}

/** Makes the function that opens an instance, for each definition. `handlers` may be added later: each opening looks them up. */
export function createOpenTransport(options: OpenTransportOptions): (definition: InstanceDefinition) => Open {
  const { clock, handlers, scheduler, memory, programs: rules = {}, onRefused, backendAccounts } = options;
  const shared = { clock, handlers, scheduler, waitingBytes: memory?.requestBytes, client: GATEWAY_INFO };
  const network = { ...options.network, handshakes: new BackendHandshakes(clock) };
  const runInContainer: RunInContainer = async (...run) =>
    (await import('../../discovery/exec.ts')).runInContainer(...run);
  const starts = new FairSlots({
    atOnce: PROGRAMS_AT_ONCE,
    atOncePerShare: PROGRAMS_AT_ONCE,
    maxHoldMs: PROGRAM_STARTS.holdMs,
    refusal: openingRefused,
    scheduler,
    clock,
  });
  const historyOf = commandHistories();
  const kinds = loadedKinds(scheduler);
  return (definition) => {
    const { template, container, era, auth } = definition;
    const isProgram = runsProgram(definition);
    const answers = memory?.heldAnswers.of(definition.serverId);
    const countHandshake = (bytes: number): boolean => {
      if (bytes > 0) return memory?.handshakes.take(definition.serverId, bytes) ?? true;
      memory?.handshakes.add(definition.serverId, bytes);
      return true;
    };
    const leased = runsAnywhere(definition) ? rules.leaseReaper?.of(definition.serverId) : undefined;
    const programs = { ...rules, reaper: leased ?? rules.reaper, runInContainer };
    const history: OpeningHistory = { command: historyOf(definition) };
    const open: Open = async (signal, { startTimeoutMs = DEFAULT_POLICY.startTimeoutMs, ...hooks } = {}) => {
      const handshakeTimeoutMs = isProgram ? startTimeoutMs : LIMITS.handshakeMs;
      const launched = await launch(definition, options).catch((thrown: unknown) => {
        onRefused?.(definition.serverId);
        throw thrown;
      });
      const { transport } = definition;
      const openKind = kinds.loaded(transport) ?? (await kinds.load(transport));
      try {
        const own = { programs, handshakeTimeoutMs, signal, history, answers, countHandshake, era };
        const opening = { ...shared, ...hooks, ...own };
        if (auth === undefined) return await openKind(launched, { ...opening, network });
        if (backendAccounts === undefined) throw notStarted(NO_VAULT);
        if (auth.who === 'user')
          return await backendAccounts.openFor(definition, (tokens, ending) =>
            openKind(launched, { ...opening, network: { ...network, tokens }, signal: ending }),
          );
        const account = await backendAccounts.sharedAccount(definition);
        return await openKind(launched, { ...opening, network: { ...network, account } });
      } catch (thrown) {
        throw signal.aborted ? thrown : withMissingVariables(thrown, launched, rules.passEnv);
      }
    };
    if (!isProgram || container !== undefined) return open;
    // The owner is the template: a program of a template with few starting programs does not wait behind those of another.
    return async (signal, hooks) => {
      const free = rules.reaper?.untilFree();
      if (free !== undefined) await unlessAborted(signal, free, openingCancelled);
      return starts.take({ shareId: template, signal, start: () => open(signal, hooks) });
    };
  };
}

/** Makes the look-up of the history of an instance's command, which all instances with that command share. */
function commandHistories(): (definition: InstanceDefinition) => CommandHistory | undefined {
  const histories = new LruMap<CommandHistory>(MAX_COMMANDS);
  return (definition) => {
    if (!runsProgram(definition)) return undefined;
    const { command, args, workingDir, container } = definition;
    const key = JSON.stringify([command, args, workingDir, container]);
    const known = histories.get(key) ?? {};
    histories.set(key, known);
    return known;
  };
}

const NO_VAULT = 'accounts at backends are not kept here: they need an encryption key';

/** The most commands whose behaviour is remembered; the least recently registered one is forgotten. */
const MAX_COMMANDS = 4_096;

/**
 * Programs that start at the same time: more would leave the gateway itself no processor when it starts a
 * thousand. A program that has not opened after `holdMs` no longer delays the next ones. Source: ADR 94.
 */
export const PROGRAM_STARTS = { least: 4, perProcessor: 2, holdMs: 5_000 } as const;
const PROGRAMS_AT_ONCE = Math.max(PROGRAM_STARTS.least, PROGRAM_STARTS.perProcessor * availableParallelism());

/** The definition that is really started. Throws when it must not be; each attempt to start it checks again. */
async function launch(
  definition: InstanceDefinition,
  { definitions, programs: { protectedPaths = [], user, passEnv } = {} }: OpenTransportOptions,
): Promise<InstanceDefinition> {
  if (definition.container !== undefined) return definition; // its requirements are in the container
  const refusal = await exposureOf(definition, protectedPaths, { user });
  if (refusal !== undefined) throw notStarted(refusal.reason);
  const rules = definitions?.get(definition.template);
  if (!runsProgram(definition) || rules === undefined) return launchOf(definition);
  const launched = launchOf(withTemplateEnvironment(definition, rules));
  const { command = '', env } = launched;
  const environment = childEnvironment(env, programEnvironment(user), process.platform, passEnv);
  // The program as the system looks for it: a name in PATH, a path from the working folder.
  const program = /[/\\]/.test(command) ? resolve(launched.workingDir ?? user?.home ?? '', command) : command;
  const unmet = await unmetRequirement(rules.requires ?? [], program, environment, user);
  if (unmet !== undefined) throw notStarted(unmet);
  return launched;
}

function notStarted(why: string) {
  return backendUnavailable(`it is not started: ${why.replace(/\.$/, '')}`, { delivered: 'no' });
}

/** A program may have failed because it needs a proxy or a certificate that only the gateway has in its environment. */
function withMissingVariables(
  thrown: unknown,
  definition: InstanceDefinition,
  passEnv: readonly string[] | undefined,
): unknown {
  const { env, container } = definition;
  if (!runsProgram(definition) || container !== undefined || !(thrown instanceof GatewayError)) return thrown;
  const { reason } = thrown.facts;
  const missing = missingVariables(env, passEnv);
  if (reason === undefined || missing.length === 0) return thrown;
  const why = `${reason}; the gateway has ${missing.join(', ')}, which the program does not get (stdio.pass_env)`;
  return backendUnavailable(why, { ...thrown.facts, cause: thrown, delivered: 'no' });
}
