// A POSIX shell in an empty folder with the command `stagedoor`, for specs that run the commands of a page or a help text.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { binPath, cacheFolder } from '../../helpers/programs/program.ts';

/** Pairs of documented and real values: ports, addresses, paths. */
export type Replacements = readonly (readonly [written: string, real: string])[];

/** The outcome of a line. */
export interface Typed {
  /** 0 for success. */
  readonly status: number;
  /** Standard output and standard error, as in a terminal. */
  readonly text: string;
}

/** Waits for the end of its input. A gateway may have its state in another folder. */
const STOP =
  'cat; stagedoor gateway stop; if [ -d ~/state ]; then stagedoor gateway stop --state-dir ~/state; fi';

const modules = fileURLToPath(new URL('../../../node_modules', import.meta.url));

export class Shell {
  /** The working folder. */
  readonly folder: string;
  /** The HOME of commands. */
  readonly home: string;
  readonly #base: string;
  readonly #replacements: Replacements;
  readonly #bash;
  /** Stops the gateways of the folder when this process has ended, also when it was killed: they run in groups of their own. */
  readonly #stopper;

  private constructor(base: string, replacements: Replacements, env: Readonly<Record<string, string>>) {
    this.#base = base;
    this.#replacements = replacements;
    this.folder = join(base, 'work');
    this.home = join(base, 'home');
    const path = [join(base, 'bin'), join(modules, '.bin'), dirname(process.execPath), process.env.PATH];
    const variables = {
      PATH: path.join(delimiter),
      HOME: this.home,
      TMPDIR: base,
      XDG_CACHE_HOME: cacheFolder,
      GATEWAY_HOST: '127.0.0.1',
    };
    const options = { cwd: this.folder, env: { ...variables, ...env } };
    this.#bash = spawn('bash', [], { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#stopper = spawn('bash', ['-c', STOP], {
      ...options,
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#bash.stdout.setEncoding('utf8');
  }

  /** Opens a shell with these variables. */
  static async open(env: Readonly<Record<string, string>>, replacements: Replacements = []): Promise<Shell> {
    const base = await mkdtemp(join(tmpdir(), 'stagedoor-shell-'));
    for (const name of ['bin', 'home', 'work']) await mkdir(join(base, name));
    const script = `#!/bin/sh\nexec '${process.execPath}' '${binPath}' "$@"\n`;
    await writeFile(join(base, 'bin/stagedoor'), script, { mode: 0o755 });
    return new Shell(base, replacements, env);
  }

  /** Runs one line with the real values; its output has the documented ones. */
  async type(line: string): Promise<Typed> {
    const mark = `status-${Math.random()}-`;
    const end = new RegExp(`${mark}(\\d+)\\n$`);
    let printed = '';
    const status = new Promise<number>((resolve, reject) => {
      const close = (): void => reject(new Error(`the shell ended at: ${line}`));
      const read = (text: string): void => {
        printed += text;
        const [, code] = end.exec(printed) ?? [];
        if (code === undefined) return;
        this.#bash.stdout.off('data', read);
        this.#bash.off('close', close);
        resolve(Number(code));
      };
      this.#bash.stdout.on('data', read);
      this.#bash.once('close', close);
    });
    const real = this.#replacements.reduce((so, [written, meant]) => so.replaceAll(written, meant), line);
    this.#bash.stdin.write(`{ ${real}\n} < /dev/null 2>&1\necho "${mark}$?"\n`);
    return { status: await status, text: this.#asWritten(printed.replace(end, '')) };
  }

  /** Closes the shell and stops a gateway that runs in the background in its folder. */
  async close(): Promise<void> {
    this.#bash.stdin.end();
    await once(this.#bash, 'close');
    this.#stopper.stdin.end();
    await once(this.#stopper, 'close');
    await rm(this.#base, { recursive: true, force: true, maxRetries: 10 });
  }

  #asWritten(text: string): string {
    return this.#replacements
      .reduce((so, [written, meant]) => so.replaceAll(meant, written), text)
      .replaceAll(this.folder, '/home/ada/gateway')
      .replaceAll(this.home, '/home/ada');
  }
}
