// The requirements of a template, such as `"requires": ["node>=20"]`: which of them can be checked, and whether the
// machine that starts the program meets them. Requirements in other forms are for people and are reported as unchecked.

import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import type { ProgramUser } from '../domain/instances/command.ts';

/** The runtimes that report their version. */
const RUNTIMES: readonly string[] = ['node', 'python', 'uv', 'deno', 'bun', 'docker', 'podman', 'git'];

/** The form of a requirement that can be checked: `node`, `node>=20`, `python >= 3.10`. */
const FORM = /^([a-z]+)(?:\s*>=\s*(\d+(?:\.\d+){0,3}))?$/;

const ANSWER_MS = 5_000;

/** One line for each requirement that is not checked. */
export function uncheckedRequirements(requires: readonly string[]): string[] {
  return requires
    .filter((text) => read(text) === undefined)
    .map((text) => `the requirement "${text}" of its template is not checked`);
}

type ProgramVariables = Readonly<Record<string, string>>;

/**
 * The reason why a program may not be started, as a clause about the first unmet requirement; undefined when it may. `user`: runs
 * the programs, and the question for their version as well, so that a program has the same rights there.
 */
export async function unmetRequirement(
  requires: readonly string[],
  command: string,
  environment: ProgramVariables,
  user?: ProgramUser,
): Promise<string | undefined> {
  // Each program is asked once, however many requirements name it.
  const versions = new Map<string, Promise<Version>>();
  const ask = (program: string): Promise<Version> => {
    const asked = versions.get(program) ?? versionOf(program, environment, user);
    versions.set(program, asked);
    return asked;
  };
  for (const text of requires) {
    const requirement = read(text);
    if (requirement === undefined) continue;
    const problem = await problemOf(requirement, command, ask);
    if (problem !== undefined) return `its template requires ${text}, and ${problem}`;
  }
  return undefined;
}

async function problemOf(
  { names, least }: Requirement,
  command: string,
  ask: (program: string) => Promise<Version>,
): Promise<string | undefined> {
  // The program itself if it is that runtime, else the runtime in its PATH.
  const own = basename(command).replace(/\.exe$/i, '');
  const isRuntime = names.some((name) => own === name || own.replace(/\d(\.\d+)?$/, '') === name);
  let problem: string | undefined;
  for (const program of isRuntime ? [command] : names) {
    const version = await ask(program);
    if (typeof version === 'string') problem ??= version;
    else if (isAtLeast(version, least)) return undefined;
    else return `"${program} --version" prints ${version.join('.')}`;
  }
  return problem;
}

interface Requirement {
  /** The names of the program of the runtime. */
  readonly names: readonly string[];
  readonly least: readonly number[];
}

/** The numbers of a version, or the reason why there are none, as a clause. */
type Version = readonly number[] | string;

function read(text: string): Requirement | undefined {
  const [, runtime = '', least = '0'] = FORM.exec(text.trim()) ?? [];
  if (!RUNTIMES.includes(runtime)) return undefined;
  return { names: runtime === 'python' ? ['python3', 'python'] : [runtime], least: numbersOf(least) };
}

function numbersOf(version: string): number[] {
  return version.split('.').map(Number);
}

/** True when the version is at least the wanted one. Missing parts are 0. */
function isAtLeast(version: readonly number[], least: readonly number[]): boolean {
  const index = least.findIndex((part, at) => part !== (version[at] ?? 0));
  return index === -1 || (version[index] ?? 0) > (least[index] ?? 0);
}

/** The version that a program reports. Never rejects. */
function versionOf(program: string, env: ProgramVariables, user?: ProgramUser): Promise<Version> {
  if (program === process.execPath) return Promise.resolve(numbersOf(process.versions.node));
  const limits = { timeout: ANSWER_MS, killSignal: 'SIGKILL', windowsHide: true } as const;
  const options = { ...limits, env, cwd: user?.home, uid: user?.uid, gid: user?.gid };
  return new Promise((resolve) => {
    execFile(program, ['--version'], options, (error, stdout, stderr) => {
      if (error?.code === 'ENOENT') return resolve(`program "${program}" not found`);
      if (error?.killed) return resolve(`"${program} --version" did not answer within ${ANSWER_MS / 1000} s`);
      const [number] = /\d+(?:\.\d+){0,3}/.exec(`${stdout}\n${stderr}`) ?? [];
      resolve(number === undefined ? `"${program} --version" prints no version` : numbersOf(number));
    });
  });
}
