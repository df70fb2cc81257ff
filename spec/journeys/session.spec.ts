// Types the commands of docs/guides/session.md into a shell and compares what they answer with what the page says. Figures that
// differ from run to run (ports, processes, identifiers, times) count as equal. UPDATE_SESSION=1 writes the page anew.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { freePort } from '../../src/cli/free-port.ts';
import { binPath } from '../helpers/program.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('journey: the recorded session', { timeoutMs: 180_000 });
const PAGE = fileURLToPath(new URL('../../docs/guides/session.md', import.meta.url));
const BLOCK = /(?<=^```console\n)[\s\S]*?(?=^```$)/gm;
/** The ports that the page names: of the gateway and of the server that is registered by its endpoint. */
const [GATEWAY_PORT, SERVER_PORT] = ['8080', '3001'];

test.needs(process.platform !== 'win32', 'the commands are typed into a POSIX shell')(
  'every command answers what the page says',
  async () => {
    const page = await readFile(PAGE, 'utf8');
    const blocks = [...page.matchAll(BLOCK)].map(([block]) => block);
    assert.ok(blocks.length > 4, 'the page has blocks of commands');
    const shell = await Shell.open();
    const seen: string[] = [];
    try {
      for (const block of blocks) {
        let text = '';
        for (const [, command = ''] of block.matchAll(/^\$ (.*)$/gm)) {
          text += `$ ${command}\n${await shell.type(command)}`;
        }
        seen.push(text);
      }
    } finally {
      await shell.close();
    }
    if (process.env.UPDATE_SESSION)
      await writeFile(
        PAGE,
        page.replaceAll(BLOCK, () => seen.shift() ?? ''),
      );
    else assert.equal(seen.map(steady), blocks.map(steady));
  },
);

test.run();

/** Without what differs from run to run; of a table only the words. */
function steady(text: string): string {
  return text
    .replaceAll(/sd_\w{16}_[\w-]+/g, 'KEY')
    .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UUID')
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?/g, 'TIME')
    .replaceAll(/\b(process|in|uptime) +\d+(\.\d+)?( m?s\b)?/g, '$1 N')
    .replaceAll(/ {2,}|-{2,}/g, '  ');
}

/** A shell in an empty folder, in which `stagedoor` and the servers of the page are commands. */
class Shell {
  readonly #folder: string;
  readonly #server;
  readonly #bash;
  readonly #ports: readonly (readonly [shown: string, real: string])[];

  private constructor(folder: string, ports: readonly string[]) {
    const [gateway = '', server = ''] = ports;
    this.#folder = folder;
    this.#ports = [
      [GATEWAY_PORT, gateway],
      [SERVER_PORT, server],
    ];
    const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));
    const env = {
      PATH: [join(folder, 'bin'), join(modules, '.bin'), dirname(process.execPath), process.env.PATH].join(
        delimiter,
      ),
      HOME: join(folder, 'home'),
      TMPDIR: folder,
      GATEWAY_PORT: gateway,
      GATEWAY_HOST: '127.0.0.1',
    };
    this.#server = spawn('mcp-server-everything', ['streamableHttp'], {
      env: { ...env, PORT: server },
      stdio: 'ignore',
    });
    this.#bash = spawn('bash', [], { cwd: join(folder, 'work'), env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#bash.stdout.setEncoding('utf8');
  }

  static async open(): Promise<Shell> {
    const folder = await mkdtemp(join(tmpdir(), 'stagedoor-session-'));
    for (const name of ['bin', 'home', 'work']) await mkdir(join(folder, name));
    const script = `#!/bin/sh\nexec '${process.execPath}' '${binPath}' "$@"\n`;
    await writeFile(join(folder, 'bin/stagedoor'), script, { mode: 0o755 });
    return new Shell(folder, [await freePort(), await freePort()].map(String));
  }

  /** Types one line and gives what it prints, with the ports and the folder that the page names. */
  async type(line: string): Promise<string> {
    const end = `ended ${Math.random()}`;
    let printed = '';
    const isOver = new Promise<void>((resolve, reject) => {
      const read = (text: string): void => {
        printed += text;
        if (!printed.endsWith(`${end}\n`)) return;
        this.#bash.stdout.off('data', read);
        resolve();
      };
      this.#bash.stdout.on('data', read);
      this.#bash.once('close', () => reject(new Error(`the shell ended at: ${line}`)));
    });
    const real = this.#ports.reduce((so, [shown, port]) => so.replaceAll(`:${shown}`, `:${port}`), line);
    this.#bash.stdin.write(`{ ${real}\n} < /dev/null 2>&1\necho '${end}'\n`);
    await isOver;
    const text = printed.slice(0, -end.length - 1);
    return this.#ports
      .reduce((so, [shown, port]) => so.replaceAll(`:${port}`, `:${shown}`), text)
      .replaceAll(join(this.#folder, 'work'), '/home/ada/gateway')
      .replaceAll(join(this.#folder, 'home'), '/home/ada');
  }

  async close(): Promise<void> {
    this.#bash.removeAllListeners('close');
    // A gateway that a failed session left behind.
    this.#bash.stdin.end('{ stagedoor gateway stop; } > /dev/null 2>&1\n');
    await once(this.#bash, 'close');
    this.#server.kill('SIGKILL');
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
