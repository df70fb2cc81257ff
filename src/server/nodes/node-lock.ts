// Makes sure that only one process at a time is a given node of a database: two would run every program twice. For
// a database file it is a lock of the kernel, on a server a row that its holder changes every few seconds.
// Source: ADR 47.

import { hash, randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { exhaustMap } from 'rxjs';
import { ConfigError } from '../../config/config-error.ts';
import { reasonOf } from '../../domain/errors/errors.ts';
import { settlesWithin, sleep, systemClock } from '../../domain/time/clock.ts';
import { ticks$ } from '../../domain/time/clock-streams.ts';
import { lockFile } from '../../persistence/file-lock.ts';
import type { SettingStore } from '../../persistence/store.ts';

export interface NodeLock {
  release(): Promise<void>;
}

/** Interval at which the holder changes its row, in ms. */
const LOCK_HEARTBEAT_MS = 3_000;
/** A row without a change for this time, in ms, belongs to a killed process: longer than a heartbeat and an operation. */
const LOCK_EXPIRY_MS = 10_000;
/** The longest wait for the deletion of the lock, in ms. */
const RELEASE_MS = 2_000;
/** Interval at which a start checks the row of its node, in ms. */
const CHECK_MS = 500;

/** Locks a node of a database file. Throws ConfigError when another process has it, and when its file cannot be locked. */
export async function lockNodeOfFile(databaseFile: string, nodeId: string): Promise<NodeLock> {
  // A link to the file names the same database. One that does not exist yet is not a link.
  const file = await realpath(databaseFile).catch(() => databaseFile);
  const path = fileOfNode(file, nodeId, 'claim');
  const lock = await lockFile(path).catch((error: unknown) => {
    throw new ConfigError(`${path} cannot be locked: ${reasonOf(error)}`, error);
  });
  if (lock === undefined) throw new ConfigError(inUse('another process', nodeId, file));
  return lock;
}

/** The name of a file of a node, next to its database file. That of its lock ends with `.claim`: older gateways lock it, too. */
export function fileOfNode(databaseFile: string, nodeId: string, ending: 'claim' | 'reaper'): string {
  return `${databaseFile}.${encodeURIComponent(nodeId)}.${ending}`;
}

interface NodeOfServerOptions {
  /** The name of the database, for the message of a start that is refused. */
  readonly database: string;
  /** Gets a line when the start has to wait, and when another process has taken over the node. */
  readonly onNotice?: (line: string) => void;
  /** Name of this process, for the message of a start that is refused. Default: process id and host name. */
  readonly processName?: string;
  /** The process that holds the lock. Default: this one. */
  readonly pid?: number;
  /** Ends the wait, which rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Locks a node of a database server. Clocks are not compared: a start that finds a row watches it for 10 s, and replaces it
 * if it does not change; at once when its process ran on this machine, among the same process ids, and is gone. Throws
 * ConfigError if it changes, DATABASE_UNAVAILABLE.
 */
export async function lockNodeOfServer(
  settings: SettingStore,
  nodeId: string,
  options: NodeOfServerOptions,
): Promise<NodeLock> {
  const { database, onNotice = () => {}, pid = process.pid } = options;
  const { processName = `process ${pid} on ${hostname()}` } = options;
  const identity = identityOf(pid);
  // Hashed: an id may be as long as the name of a setting.
  const name = `node.${hash('sha256', nodeId).slice(0, 32)}`;
  const holder = randomUUID();
  let count = 0;
  let row = await untilFree(settings, name, nodeId, { database, onNotice, signal: options.signal });
  /** False when the stored row is another one. */
  const change = async (): Promise<boolean> => {
    count += 1;
    const next = JSON.stringify({ holder, who: processName, count, place: identity } satisfies Row);
    const isChanged = await settings.exchange(name, row, next);
    if (isChanged) row = next;
    return isChanged;
  };
  if (!(await change()))
    throw new ConfigError(inUse(rowOf(await settings.read(name)).who, nodeId, database, LOCK_EXPIRY_NOTE));

  let isReported = false;
  const sendHeartbeat = async (): Promise<void> => {
    if (await change()) return;
    const now = await settings.read(name);
    const { who, holder: present } = rowOf(now);
    if (now === undefined || present === holder) {
      row = now; // the answer to an earlier heartbeat was lost, or another process had the node
      await change();
    } else if (!isReported) {
      isReported = true;
      onNotice(
        `${who} has taken over the node "${nodeId}": stop one of the two, because both run the programs of the node`,
      );
    }
  };
  let heartbeat = Promise.resolve();
  const heartbeats = ticks$(systemClock, LOCK_HEARTBEAT_MS)
    .pipe(
      exhaustMap(() => {
        heartbeat = sendHeartbeat().catch(() => {
          // No other process can lock the node either while the database is unavailable.
        });
        return heartbeat;
      }),
    )
    .subscribe();
  return {
    release: async () => {
      heartbeats.unsubscribe();
      const deleted = heartbeat.then(() => settings.exchange(name, row, undefined));
      await settlesWithin(deleted, RELEASE_MS, systemClock); // else the database is unavailable: the row expires
    },
  };
}

/** The row to replace, after it stayed unchanged until its expiry; undefined without a row. */
async function untilFree(
  settings: SettingStore,
  name: string,
  nodeId: string,
  { database, onNotice, signal }: Required<Pick<NodeOfServerOptions, 'database' | 'onNotice' | 'signal'>>,
): Promise<string | undefined> {
  const first = await settings.read(name);
  if (first === undefined) return undefined;
  const { who, place: identity } = rowOf(first);
  if (isGone(identity)) return first;
  onNotice(
    `the node "${nodeId}" belongs to ${who}, which did not release it: waiting ${LOCK_EXPIRY_MS / 1_000} s for its heartbeat`,
  );
  for (let waitedMs = 0; waitedMs < LOCK_EXPIRY_MS; waitedMs += CHECK_MS) {
    await sleep(systemClock, CHECK_MS, signal);
    const now = await settings.read(name);
    if (now === undefined) return undefined;
    if (now !== first) throw new ConfigError(inUse(rowOf(now).who, nodeId, database, LOCK_EXPIRY_NOTE));
  }
  return first;
}

interface Row {
  readonly holder: string;
  readonly who: string;
  readonly count: number;
  readonly place?: ProcessIdentity | undefined;
}

/**
 * The identity that distinguishes a process from all others, also from processes of other containers on the same machine and from
 * later ones with its id.
 */
interface ProcessIdentity {
  /** The id of this start of the machine. */
  readonly bootId: string;
  /** The namespaces in which the process id is valid, and the start time is counted. */
  readonly namespaces: string;
  readonly pid: number;
  /** The start of the process, in clock ticks since the start of the system. */
  readonly startTime: string;
}

/** The result is undefined where the system does not say, as on macOS and Windows. */
function identityOf(pid: number): ProcessIdentity | undefined {
  try {
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const namespaces = ['pid', 'time'].map((name) => readlinkSync(`/proc/self/ns/${name}`)).join(' ');
    const { startTime } = statusOf(pid);
    return startTime === undefined ? undefined : { bootId, namespaces, pid, startTime };
  } catch {
    return undefined; // another system, or without /proc
  }
}

/**
 * True only when the process certainly ended: the same boot and the same process ids, and no process with its id
 * and start time.
 */
function isGone(identity: ProcessIdentity | undefined): boolean {
  const own = identityOf(process.pid);
  if (identity === undefined || own === undefined) return false;
  if (identity.bootId !== own.bootId || identity.namespaces !== own.namespaces) return false;
  try {
    process.kill(identity.pid, 0);
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'ESRCH'; // not EPERM: another user's
  }
  try {
    const { state, startTime } = statusOf(identity.pid);
    return ENDED.has(state) || (startTime !== undefined && startTime !== identity.startTime);
  } catch {
    return false; // hidden from this user, or it has just ended: the next start sees it
  }
}

/** The states of a process that has ended, and whose parent did not ask yet. */
const ENDED: ReadonlySet<string | undefined> = new Set(['Z', 'X']);

/** The fields 3 and 22 of `/proc/<pid>/stat`; the name of the program, which is before them, may contain spaces and brackets. */
function statusOf(pid: number): { state: string | undefined; startTime: string | undefined } {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0], startTime: fields[19] };
}

const LOCK_EXPIRY_NOTE = ` (the lock of a killed process expires after ${LOCK_EXPIRY_MS / 1_000} s)`;

/** The row in a text, which only this file writes. */
function rowOf(text = '{}'): Row {
  return JSON.parse(text);
}

function inUse(processName: string, nodeId: string, database: string, more = ''): string {
  return (
    `${processName} already runs as the node "${nodeId}" on the database ${database}: stop it, or start this one with ` +
    `another --node-id${more}`
  );
}
