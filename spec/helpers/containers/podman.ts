// A real container engine for specs: podman with its own storage, settings and socket in a scratch folder. Its image is
// empty; containers mount the programs of this machine and this repository read-only.

import { type ChildProcess, execFile, type PromiseWithChild, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { accepts } from '../clients/raw-http.ts';
import { descendantsOf, killNow, processesWhere } from '../programs/processes.ts';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../..', import.meta.url));
/** The timeout of one podman command, in ms. */
const COMMAND_MS = 60_000;
/** Its image without any file. */
export const EMPTY_IMAGE = 'localhost/stagedoor-spec:1';
/** The path of Node inside containers. */
const NODE = '/opt/node';

/** An engine, or the reason why there is none. */
export type FoundPodman =
  | { readonly engine: Podman; readonly skip: '' }
  | { readonly engine: undefined; readonly skip: string };

/** Starts an engine and a first container. `driver`: overlay is faster for large images, vfs works everywhere. */
export async function startPodman(driver: 'vfs' | 'overlay' = 'vfs'): Promise<FoundPodman> {
  if (process.platform !== 'linux') return { engine: undefined, skip: 'containers need Linux' };
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-podman-'));
  const engine = new Podman(folder, driver);
  try {
    await engine.prepare();
    return { engine, skip: '' };
  } catch (thrown) {
    await engine.close();
    const isMissing = thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
    const lines = String(Object(thrown).stderr ?? thrown)
      .trim()
      .split('\n');
    return { engine: undefined, skip: isMissing ? 'podman is not installed' : `podman: ${lines.at(-1)}` };
  }
}

export class Podman {
  /** Value for DOCKER_HOST. */
  readonly address: string;
  /** Scratch folder; removed by `close`. */
  readonly folder: string;
  readonly #driver: string;
  readonly #socket: string;
  #service: ChildProcess | undefined;

  constructor(folder: string, driver: string) {
    this.folder = folder;
    this.#driver = driver;
    this.#socket = join(folder, 'podman.sock');
    this.address = `unix://${this.#socket}`;
  }

  async prepare(): Promise<void> {
    const root = join(this.folder, 'rootfs');
    for (const name of ['usr', 'proc', 'sys', 'dev', 'tmp', 'etc', 'opt']) {
      await mkdir(join(root, name), { recursive: true });
    }
    for (const name of ['bin', 'lib', 'lib64', 'sbin']) await symlink(`usr/${name}`, join(root, name));
    const archive = join(this.folder, 'image.tar');
    await run('tar', ['-C', root, '-cf', archive, '.'], { timeout: COMMAND_MS });
    const runtime = ['/usr/sbin/runc', '/usr/bin/runc'].some(existsSync) ? 'runtime="runc"' : '';
    await writeFile(
      join(this.folder, 'containers.conf'),
      '[containers]\ndefault_ulimits=["nofile=4096:4096","nproc=4096:4096"]\n' +
        `[engine]\nevents_logger="file"\ncgroup_manager="cgroupfs"\n${runtime}\n`,
    );
    await this.podman('import', archive, EMPTY_IMAGE);
    await this.podman('run', '--rm', ...this.#environment(), EMPTY_IMAGE, 'true');
    await this.serve();
  }

  /** Starts the API; also again after `silence`. */
  async serve(): Promise<void> {
    const words = [...this.#storage(), 'system', 'service', '--time', '0', this.address];
    this.#service = spawn('podman', words, { env: this.#env(), stdio: 'ignore' });
    this.#service.on('error', () => {}); // seen below
    for (let tries = 0; !(await accepts({ path: this.#socket })); tries += 1) {
      if (tries === 200) throw new Error('its API does not answer');
      await delay(50);
    }
  }

  /** Stops the API; containers keep running. */
  async silence(): Promise<void> {
    const service = this.#service;
    if (service === undefined || service.exitCode !== null || service.signalCode !== null) return;
    const ended = new Promise((resolve) => service.once('exit', resolve));
    service.kill('SIGKILL');
    await ended;
    await rm(this.#socket, { force: true });
  }

  /** Starts a container and returns its id. `words`: its command; by default one that does nothing. */
  async start(labels: Readonly<Record<string, string>>, words: readonly string[] = IDLE): Promise<string> {
    const marks = Object.entries(labels).flatMap(([name, value]) => ['--label', `${name}=${value}`]);
    return this.podman('run', '-d', '--init=false', ...this.#environment(), ...marks, EMPTY_IMAGE, ...words);
  }

  /** The command line that runs a module of this repository inside a container. */
  static node(path: string, ...words: string[]): readonly string[] {
    return [NODE, join(repository, path), ...words];
  }

  /** Runs a podman command and returns its output. */
  async podman(...words: string[]): Promise<string> {
    return (await this.#run(COMMAND_MS, words)).stdout.trim();
  }

  /** Builds an image; false when that takes too long: its processes are ended and podman cleans up. */
  async build(withinMs: number, ...words: string[]): Promise<boolean> {
    const building = this.#run(withinMs + COMMAND_MS, ['build', ...words]);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      for (const pid of descendantsOf(building.child.pid ?? 0)) killNow(pid);
    }, withinMs);
    try {
      await building;
      return true;
    } catch (thrown) {
      if (isLate) return false;
      throw thrown;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Writes a program that runs podman with the storage and networks of this engine; returns its path. */
  async program(): Promise<string> {
    const path = join(this.folder, 'podman');
    const variables = Object.entries(this.#env()).map(([name, value]) => `export ${name}='${value ?? ''}'`);
    const words = this.#storage().join(' ');
    await writeFile(path, `#!/bin/sh\n${variables.join('\n')}\nexec podman ${words} "$@"\n`, { mode: 0o755 });
    return path;
  }

  /** Starts a podman command whose output is binary, or on stdout and stderr. */
  open(...words: string[]): ChildProcess {
    return spawn('podman', [...this.#storage(), ...words], {
      env: this.#env(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  async close(): Promise<void> {
    await this.silence();
    if (existsSync(join(this.folder, 'containers.conf')))
      await this.podman('rm', '-f', '-a', '-t', '0').catch(() => undefined); // there is none, or it is broken
    // The monitors of `exec` programs wait for minutes and then create the folder again.
    for (const pid of processesWhere('cmdline', (words) => words.includes(this.folder))) killNow(pid);
    // Overlay storage is a separate mount.
    await run('umount', [join(this.folder, 'storage', 'overlay')]).catch(() => undefined);
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  #environment(): readonly string[] {
    const mounts = ['/usr:/usr:ro', `${process.execPath}:${NODE}:ro`, `${repository}:${repository}:ro`];
    return ['--network=host', ...mounts.flatMap((mount) => ['-v', mount])];
  }

  #run(withinMs: number, words: readonly string[]): PromiseWithChild<{ stdout: string }> {
    const limits = { timeout: withinMs, killSignal: 'SIGKILL', maxBuffer: 16 * 1024 * 1024 } as const;
    return run('podman', [...this.#storage(), ...words], { env: this.#env(), ...limits });
  }

  #storage(): readonly string[] {
    const folders = { root: 'storage', runroot: 'run', tmpdir: 'tmp', 'network-config-dir': 'networks' };
    const words = Object.entries(folders).flatMap(([name, folder]) => [
      `--${name}`,
      join(this.folder, folder),
    ]);
    return [...words, '--storage-driver', this.#driver];
  }

  #env(): NodeJS.ProcessEnv {
    const { PATH, HOME, XDG_RUNTIME_DIR } = process.env;
    const own = { TMPDIR: this.folder, CONTAINERS_CONF: join(this.folder, 'containers.conf') };
    return { PATH, HOME, XDG_RUNTIME_DIR, ...own };
  }
}

const IDLE = ['sleep', '1000'];
