// Checks whether a command gets a file or folder that would make its program an admin: the database, the key, the
// state or the configuration of the gateway, or the system's folders of processes and devices. It reads the
// present file system; the caller decides what else is refused. Source: ADR 87.

import { existsSync, realpathSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, isAbsolute, join, normalize, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ProgramUser, Variables } from '../domain/instances/command.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import { runsProgram } from '../domain/instances/transport-kinds.ts';
import { sleep, systemClock } from '../domain/time/clock.ts';
import { PATH_CHARACTERS, pathTextsIn } from './command-paths.ts';
import { createWalk, type Location, type Look, lookAt, type Walk } from './path-walk.ts';

/** A file or a folder that no command may get; it need not exist. */
export interface ProtectedPath {
  readonly path: string;
  /** The words that complete "is ..." and "is a folder that holds ...": `the database of this gateway`. */
  readonly what: string;
  /** True for a folder of which no command may get a part either. */
  readonly isWhole?: true;
}

export type ExposedProgram = Pick<InstanceDefinition, 'command' | 'args' | 'workingDir' | 'env' | 'force'>;

/**
 * A check ends after so many steps without an answer of the file system (2 s; a network folder may not answer), and after so many
 * in all (10 s). Steps, because a step that comes late on a busy machine counts as one.
 */
const STEP_MS = 250;
const SILENT_STEPS = 8;
const MAX_STEPS = 40;

/** The most characters of texts that are walked in one turn of the event loop: 5 ms if the file system answers at once. */
const MAX_TURN_CHARACTERS = 16_384;
/** The most texts of one program that are checked, and the most characters in them: two variables full of JSON have fewer. */
const MAX_TEXTS = 32_768;
const MAX_CHARACTERS = 8 * 1024 * 1024;

export function protectedDatabase(file: string): ProtectedPath[] {
  // SQLite keeps the others beside the file that a link names.
  const files = new Set([file, existsSync(file) ? realpathSync(file) : file]);
  const database = ['', '-wal', '-shm', '-journal'].flatMap((ending) =>
    [...files].map((each) => `${each}${ending}`),
  );
  return [
    ...database.map((path) => ({ path, what: 'the database of this gateway' })),
    { path: join(dirname(file), 'gateway.key'), what: 'the signing key of this gateway' },
  ];
}

export interface ExposureOptions {
  /** The folder of the gateway. Default: that of this process. */
  readonly from?: string;
  /**
   * The user that programs run as, if that is not the user of the gateway: a program without a working folder starts
   * in its home folder.
   */
  readonly user?: Pick<ProgramUser, 'home'> | undefined;
  readonly look?: Look;
}

interface Exposure {
  /** The reason, as one sentence. */
  readonly reason: string;
  /** False when the check did not end, so that a later one may allow the command. */
  readonly isFound: boolean;
}

/**
 * The reason why the command may not be started; undefined when it may. Checks its working folder, if any, and every
 * text in its words and variables that may be a path, from that folder (default: where the program starts). No path
 * may end at one of `paths` or at a folder above one of them, nor pass through one that is whole, such as /proc:
 * neither as the kernel walks it, nor with each `..` removed first, as many programs do. Source: ADR 87.
 */
export async function exposureOf(
  program: ExposedProgram,
  paths: readonly ProtectedPath[],
  { from = process.cwd(), user, look = lookAt }: ExposureOptions = {},
): Promise<Exposure | undefined> {
  if (!runsProgram(program) || program.force === true) return undefined;
  const check = { isOver: false, answers: 0 };
  const walk = createWalk(async (path) => {
    const entry = await look(path);
    check.answers += 1;
    return entry;
  });
  const silence = async (): Promise<Exposure> => {
    for (let silent = 0, steps = 0; silent < SILENT_STEPS && steps < MAX_STEPS && !check.isOver; steps += 1) {
      const { answers } = check;
      await sleep(systemClock.background, STEP_MS);
      silent = check.answers === answers ? silent + 1 : 0;
    }
    return UNANSWERED;
  };
  const found = firstExposure(program, paths, { from, user, walk, isOver: () => check.isOver });
  try {
    return await Promise.race([found, silence()]);
  } finally {
    check.isOver = true;
  }
}

/** The tokens of this user that `gateway login` stores. */
export function credentialsPath(env: Variables, platform: NodeJS.Platform = process.platform): string {
  const home = homeFolder(env);
  const named = (platform === 'win32' ? env.APPDATA : env.XDG_CONFIG_HOME) ?? '';
  // A relative path must be ignored. Source: XDG Base Directory Specification.
  const folder = isAbsolute(named) ? named : join(home, '.config');
  return join(folder, 'stagedoor', 'credentials.json');
}

/** `HOME`, else, also for a relative path, the folder of the account; `/`, as in containers, for a user without an account. */
export function homeFolder(env: Variables): string {
  const named = env.HOME ?? '';
  if (isAbsolute(named)) return named;
  try {
    const own = homedir();
    return isAbsolute(own) ? own : userInfo().homedir;
  } catch {
    return '/'; // the system knows no such user
  }
}

/** The folders that show the memory, the environment, the open files and the folders of every process of the same user. */
const SYSTEM_FOLDERS: readonly ProtectedPath[] = (
  process.platform === 'win32' ? [] : ['/proc', '/sys', '/dev']
).map((path) => ({
  path,
  what: `${path}, which shows what the gateway has in memory and has open`,
  isWhole: true,
}));

const REMEDY =
  'with it a program can make itself an admin; name another folder, such as ./shared, or allow it with "force": true (--force).';

const UNANSWERED: Exposure = {
  reason:
    'The paths of the command could not be checked in time, because the file system did not answer; the next attempt checks them ' +
    'again, and "force": true (--force) omits the check.',
  isFound: false,
};

const TOO_MUCH: Exposure = {
  reason:
    `The words and variables of the command hold more than ${MAX_TEXTS} texts that may be paths, or more than ${MAX_CHARACTERS} ` +
    'characters in them, so that they cannot all be checked; give the program a file with them, or omit the check with "force": ' +
    'true (--force).',
  isFound: true,
};

/** What a path is, by path and identity. */
type PathMeanings = ReadonlyMap<string, string>;

interface Check extends Required<Pick<ExposureOptions, 'from'>>, Pick<ExposureOptions, 'user'> {
  readonly walk: Walk;
  readonly isOver: () => boolean;
}

async function firstExposure(
  { command = '', args, workingDir, env }: ExposedProgram,
  paths: readonly ProtectedPath[],
  { from, user, walk, isOver }: Check,
): Promise<Exposure | undefined> {
  const all = [...paths, ...SYSTEM_FOLDERS];
  const above = await foldersAbove(all, walk);
  const whole = await wholeFoldersIn(all, walk);
  const userHome = user?.home ?? homeFolder(process.env);
  const home = env.HOME ?? userHome;

  async function exposureAt(text: string, start: string): Promise<string | undefined> {
    const path = text.replace(HOME_AT_START, (user) => (user === '~+' ? start : home));
    for (const form of new Set([path, normalize(path)])) {
      if (form.length > PATH_CHARACTERS) continue;
      const { end, passed } = await walk(form, start);
      const finding = [...findIn(above, end), ...passed.flatMap((location) => findIn(whole, location))][0];
      if (finding !== undefined) return finding;
    }
    return undefined;
  }

  const ownFolder = resolve(from);
  if (workingDir !== undefined) {
    const finding = await exposureAt(workingDir, ownFolder);
    if (finding !== undefined) return found(`"${workingDir}"`, finding);
  }
  const folder = (await walk(resolve(from, workingDir ?? user?.home ?? '.'))).end.path;
  // Every program gets this HOME. A value may be secret, so its name is shown instead.
  const values = Object.entries(env).filter(([name, value]) => !(name === 'HOME' && value === userHome));
  const words = [
    ...Array.from(new Set([command, ...args]), (word) => ({ word, name: undefined })),
    ...values.map(([name, word]) => ({ word, name: `The variable ${name}` })),
  ];
  const seen = new Set<string>();
  let characters = 0;
  let turnCharacters = 0;
  for (const { word, name } of words)
    for (const text of pathTextsIn(word, { HOME: home, PWD: folder, ...env })) {
      turnCharacters += text.length;
      if (turnCharacters > MAX_TURN_CHARACTERS) {
        turnCharacters = 0;
        await nextTurn();
      }
      if (isOver()) return UNANSWERED;
      if (seen.has(text) || (text === '' && name !== undefined)) continue;
      seen.add(text);
      characters += text.length;
      if (seen.size > MAX_TEXTS || characters > MAX_CHARACTERS) return TOO_MUCH;
      const finding = await exposureAt(text, folder);
      if (finding !== undefined) return found(name ?? `"${text}"`, finding);
    }
  return undefined;
}

function found(name: string, finding: string): Exposure {
  return { reason: `${name} ${finding}: ${REMEDY}`, isFound: true };
}

/**
 * The `~` at the start of a path. A shell replaces `~`, `~+` (the current folder) and `~user`; each user counts as
 * that of the gateway.
 */
const HOME_AT_START = /^~\+?[\w.-]*(?=[/\\]|$)/;

/**
 * The protected paths and all folders above them, as written and with links followed. Where two have one identity,
 * the first counts.
 */
async function foldersAbove(paths: readonly ProtectedPath[], walk: Walk): Promise<PathMeanings> {
  const found = new Map<string, string>();
  const add = async (folder: string, meaning: string): Promise<void> => {
    for (const key of keysOf((await walk(folder)).end)) if (!found.has(key)) found.set(key, meaning);
  };
  for (const { path, what } of paths)
    for (const spelled of new Set([path, (await walk(path)).end.path])) {
      const [own = spelled, ...above] = upwardsFrom(spelled);
      await add(own, `is ${what}`);
      for (const folder of above) await add(folder, `is a folder that holds ${what} (${path})`);
    }
  return found;
}

async function wholeFoldersIn(paths: readonly ProtectedPath[], walk: Walk): Promise<PathMeanings> {
  const found = new Map<string, string>();
  for (const { path, what } of paths.filter(({ isWhole }) => isWhole))
    for (const key of keysOf((await walk(path)).end)) found.set(key, `is in ${what}`);
  return found;
}

function findIn(findings: PathMeanings, location: Location): string[] {
  return keysOf(location).flatMap((key) => findings.get(key) ?? []);
}

function keysOf({ path, identity }: Location): string[] {
  return identity === undefined ? [path] : [path, identity];
}

function upwardsFrom(path: string): string[] {
  const above = dirname(path);
  return above === path ? [path] : [path, ...upwardsFrom(above)];
}
