// The files of a background gateway, all in its state folder: its process, its log, and a lock that it holds while it runs.

import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { readRegularFile } from '../../config/read-file.ts';
import { isLoopback } from '../../domain/local-address.ts';
import { ownCommand } from '../../domain/version.ts';
import { type OptionTable, optionsOf } from '../command.ts';
import { CommandFailure } from '../failures.ts';
import { writePrivateFile } from '../private-file.ts';
import { fields } from '../remote/answers.ts';
import { SETTING_OPTIONS } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';

export interface Daemon {
  readonly pid: number;
  readonly url: string;
  readonly words: readonly string[];
  readonly folder: string;
  /** The name of its node, if a variable of its environment gives it one: another shell may not have the variable. */
  readonly nodeId?: string | undefined;
  /** The longest time for which it serves and finishes calls after a signal to stop, in ms. */
  readonly graceMs: number;
}

export type DaemonMessage =
  | { readonly kind: 'print'; readonly text: string }
  | { readonly kind: 'ready'; readonly url: string }
  | { readonly kind: 'failed'; readonly text: string; readonly isUsage: boolean };

/** The variable that is set for the detached process: the width of the terminal that started it; empty without a terminal. */
export const DAEMON_VARIABLE = 'STAGEDOOR_BACKGROUND';

/** The variable of the setting `node_id`. */
export const NODE_ID_VARIABLE = 'GATEWAY_NODE_ID';

/** The options that identify a gateway: they select the state folder. */
export const DAEMON_OPTIONS: OptionTable = Object.fromEntries(
  optionsOf({ options: SETTING_OPTIONS })
    .filter(({ flags }) => /^--(config|database|state-dir) /.test(flags))
    .map(({ flags, description }) => [flags, description]),
);

/** The files of the daemon with these settings, in the state folder. */
export async function daemonFiles(config: Config, { env }: Pick<Terminal, 'env'>): Promise<DaemonFiles> {
  const { stateFolderOf } = await import('../../server/storage.ts');
  return filesIn(stateFolderOf(config, env));
}

export function filesIn(folder: string) {
  return {
    folder,
    /** The file with a process id in the first line, as is usual; see `Daemon` for the other lines. */
    pid: join(folder, 'gateway.pid'),
    log: join(folder, 'gateway.log'),
    /** The file that is locked as long as the daemon runs; a crash releases it, too. */
    lock: join(folder, 'gateway.lock'),
  };
}

export type DaemonFiles = Readonly<ReturnType<typeof filesIn>>;

/**
 * The daemon that runs with these files now. The lock of a killed one is free, even if another process has its
 * process id by now.
 */
export async function runningDaemon(files: DaemonFiles): Promise<Daemon | undefined> {
  if (readDaemon(files) === undefined) return undefined;
  const { lockFile } = await import('../../persistence/file-lock.ts');
  const lock = await lockFile(files.lock);
  await lock?.release();
  // Read again: before the lock was tested, the file may have been that of a killed daemon.
  return lock === undefined ? readDaemon(files) : undefined;
}

/** Default addresses of a gateway: first the port for calls by template, then the port for servers. */
export const DEFAULT_URLS = ['http://127.0.0.1:8080', 'http://127.0.0.1:8000'] as const;

/** A command to print for the gateway at `url`: with `--url`, unless commands without it look there first. */
export function commandAt(
  words: string,
  url: string,
  surroundings: Pick<Terminal, 'env' | 'folder'>,
): string {
  const first = surroundings.env.STAGEDOOR_URL ? undefined : firstUrl(surroundings);
  // A port is asked by http and by https, and with the other name if its certificate has that one.
  const isFirst =
    first === url || first === url.replace(/^https:/, 'http:').replace('//localhost:', '//127.0.0.1:');
  return ownCommand(isFirst ? words : `${words} --url ${url}`);
}

/** The result is undefined in a folder that was removed, where no command finds a gateway by itself. */
function firstUrl(surroundings: Pick<Terminal, 'env' | 'folder'>): string | undefined {
  try {
    return usualUrls(surroundings)[0];
  } catch (thrown) {
    if (thrown instanceof CommandFailure) return undefined;
    throw thrown;
  }
}

/** The addresses used without an option: the background gateway of this folder, then the defaults. */
export function usualUrls({ folder }: Pick<Terminal, 'folder'>): readonly string[] {
  const url = urlHere(readDaemon(filesIn(folder)));
  return [...new Set([...(url === undefined ? [] : [url]), ...DEFAULT_URLS])];
}

/** The address of the background gateway of this folder, if it has to be named: it is for other machines, too. */
export function otherUrlHere({ folder }: Pick<Terminal, 'folder'>): string | undefined {
  const url = URL.parse(readDaemon(filesIn(folder))?.url ?? '');
  return url !== null && /^https?:$/.test(url.protocol) && !isLoopback(url.hostname) ? url.origin : undefined;
}

/**
 * The address of a daemon if it is on this machine, else undefined: credentials are sent to it, and the folder may
 * come from anywhere.
 */
function urlHere(daemon: Daemon | undefined): string | undefined {
  const url = URL.parse(daemon?.url ?? '');
  return url !== null && isLoopback(url.hostname) ? url.origin : undefined;
}

/**
 * The background gateway of this folder, also one that has ended without a stop: another gateway at a default address
 * must not silently take its place. `lost`: the message for one that has ended.
 */
export async function daemonHere({
  folder,
}: Pick<Terminal, 'folder'>): Promise<{ readonly url: string; readonly lost?: string } | undefined> {
  const files = filesIn(folder);
  const daemon = readDaemon(files);
  const url = urlHere(daemon);
  if (daemon === undefined || url === undefined) return undefined;
  // Without the right to test its lock it counts as running.
  if ((await runningDaemon(files).catch(() => daemon)) !== undefined) return { url };
  const start = ownCommand('gateway start --background');
  return {
    url,
    lost:
      `the gateway in the background here (${url}, process ${daemon.pid}) has ended; ${files.log} says why; ` +
      `start it again with "${start}", or name another one with --url`,
  };
}

/** The content of the file, whether or not the daemon still runs; undefined without a file of this form. */
function readDaemon({ pid: path }: DaemonFiles): Daemon | undefined {
  try {
    const [pid = '', url = '', start = ''] = readRegularFile(path).toString('utf8').split('\n');
    const details: unknown = JSON.parse(start);
    return /^[1-9]\d{0,9}$/.test(pid) && isStart(details) ? { pid: Number(pid), url, ...details } : undefined;
  } catch {
    return undefined;
  }
}

type Start = Pick<Daemon, 'words' | 'folder' | 'graceMs' | 'nodeId'>;

/** The folder, and with it the file, may come from anywhere. */
function isStart(value: unknown): value is Start {
  const { words, folder, graceMs, nodeId } = fields(value);
  return (
    Array.isArray(words) &&
    words.every((word) => typeof word === 'string') &&
    typeof folder === 'string' &&
    typeof graceMs === 'number' &&
    (nodeId === undefined || typeof nodeId === 'string')
  );
}

/** Writes the file of a daemon. Only the owner can read it: the words of a command line may name a password. */
export function writeDaemon({ pid: path }: DaemonFiles, { pid, url, ...details }: Daemon): void {
  writePrivateFile(path, `${pid}\n${url}\n${JSON.stringify(details)}\n`);
}
