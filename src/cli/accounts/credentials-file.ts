// The tokens of `gateway login`: one per gateway, in a file that only its owner can read. A token is found under exactly
// the URL that issued it. Whether a command uses one is request-credentials.ts.

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { CommandFailure } from '../failures.ts';
import { writePrivateFile } from '../private-file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A token as it is kept. */
export interface KeptToken {
  readonly username: string;
  readonly access_token: string;
  /** ISO 8601. */
  readonly expires_at: string;
}

/** The file that is used with these variables: `stagedoor/credentials.json` in the person's folder of settings. */
export function credentialsPath(env: Environment, platform: NodeJS.Platform = process.platform): string {
  const home = env.HOME || homedir();
  const folders = platform === 'win32' ? [env.APPDATA] : [env.XDG_CONFIG_HOME];
  // A relative path is to be ignored. Source: XDG Base Directory Specification.
  const folder = folders.find((each) => each !== undefined && isAbsolute(each)) ?? join(home, '.config');
  return join(folder, 'stagedoor', 'credentials.json');
}

/** The tokens in one file. */
export class CredentialsFile {
  readonly path: string;
  readonly #write: typeof writePrivateFile;

  /** `write` is replaced in specs. */
  constructor(path: string, write: typeof writePrivateFile = writePrivateFile) {
    this.path = path;
    this.#write = write;
  }

  /** The token that this very URL issued, unless it has expired. */
  find(url: string, nowMs: number = Date.now()): KeptToken | undefined {
    return valid(writtenIn(this.#read()), nowMs).get(url);
  }

  /** The token that this very URL issued, if it has expired: until the next login it is still in the file. */
  findExpired(url: string, nowMs: number = Date.now()): KeptToken | undefined {
    const token = writtenIn(this.#read()).get(url);
    return token !== undefined && isExpired(token, nowMs) ? token : undefined;
  }

  /** Keeps a token in place of the one of before; forgets those that have expired. */
  keep(url: string, token: KeptToken, nowMs: number = Date.now()): void {
    this.#change((tokens) => new Map([...valid(tokens, nowMs), [url, token]]));
  }

  /** Forgets the token of a URL, also one that has expired. False when there was none. */
  forget(url: string): boolean {
    const before = this.#change(
      (tokens) => tokens.has(url) && new Map([...tokens].filter(([each]) => each !== url)),
    );
    return before.has(url);
  }

  /** Forgets everything; tells for which URLs there was a token. */
  forgetAll(): readonly string[] {
    const before = this.#change((tokens) => tokens.size > 0 && new Map());
    return [...before.keys()];
  }

  /**
   * Replaces the tokens by what `change` makes of them; false leaves them. Returns those of before. Another command may
   * write at the same instant: what it wrote is looked at again right before it would be lost.
   */
  #change(change: (tokens: Tokens) => Tokens | false): Tokens {
    for (let attempt = 1; ; attempt += 1) {
      const text = this.#read();
      const before = writtenIn(text);
      const after = change(before);
      if (after === false || this.#replace(after, () => attempt === ATTEMPTS || this.#read() === text)) {
        return before;
      }
    }
  }

  /** Empty when there is no file. */
  #read(): string {
    try {
      return readFileSync(this.path, 'utf8');
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      if (code === 'ENOENT') return '';
      throw new CommandFailure(`${this.path} cannot be read (${code ?? 'unknown reason'})`, { cause: error });
    }
  }

  #replace(tokens: Tokens, isStillRight: () => boolean): boolean {
    const text = `${JSON.stringify({ tokens: Object.fromEntries(tokens) }, null, 2)}\n`;
    try {
      return this.#write(this.path, text, isStillRight);
    } catch (error) {
      if (error instanceof CommandFailure) throw error;
      const code = error instanceof Error && 'code' in error ? error.code : 'unknown reason';
      throw new CommandFailure(`${this.path} cannot be written (${code})`, { cause: error });
    }
  }
}

type Tokens = ReadonlyMap<string, KeptToken>;

/** Tries to find the file unchanged; the last one replaces it in any case. */
const ATTEMPTS = 5;

/** Those that have not expired. */
function valid(tokens: Tokens, nowMs: number): Tokens {
  return new Map([...tokens].filter(([, token]) => !isExpired(token, nowMs)));
}

/** All that are written. What is no such document holds none: the next login writes it anew. */
function writtenIn(text: string): Tokens {
  const written = Object.entries(membersOf(membersOf(parsed(text)).tokens)).flatMap(([url, entry]) => {
    const token = tokenOf(entry);
    return token === undefined ? [] : [[url, token] as const];
  });
  return new Map(written);
}

/** A time that cannot be read is over. */
function isExpired({ expires_at: expiresAt }: KeptToken, nowMs: number): boolean {
  return !(Date.parse(expiresAt) > nowMs);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // no JSON holds no token
  }
}

/** Checked by hand: every command reads this file, and a schema would cost each of them 50 ms. */
function tokenOf(written: unknown): KeptToken | undefined {
  const { username, access_token, expires_at } = membersOf(written);
  const isToken = typeof username === 'string' && typeof access_token === 'string' && access_token !== '';
  return isToken && typeof expires_at === 'string' ? { username, access_token, expires_at } : undefined;
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
