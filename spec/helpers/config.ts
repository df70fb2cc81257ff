// Loads settings from texts, for the specs of the configuration. It reads no file and no real environment.

import { resolve } from 'node:path';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import type { Flags } from '../../src/config/sources.ts';
import type { Variables } from '../../src/domain/instances/command.ts';

/** The working folder of the gateway in these specs; it need not exist. */
export const cwd = resolve('/srv/gateway');
/** The settings of each source. */
export interface Written {
  readonly flags?: Flags;
  readonly env?: Variables;
  /** Text of gateway.yaml. */
  readonly yaml?: string;
  /** Texts of further files by their path in `cwd`. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Loads these settings only. */
export function load({ flags, env, yaml, files = {} }: Written = {}) {
  const texts = new Map(Object.entries(files).map(([name, text]) => [resolve(cwd, name), text]));
  if (yaml !== undefined) texts.set(resolve(cwd, 'gateway.yaml'), yaml);
  return loadConfig({
    ...(flags ? { flags } : {}),
    ...(env ? { env } : {}),
    cwd,
    hostName: 'spec-host',
    readFile: (path) => texts.get(path),
  });
}

/** The first message of the ConfigError, which is one line. */
export function refusal(written: Written): string {
  return faultsOf(() => load(written))[0] ?? 'nothing was refused';
}

/** All messages of the ConfigError, a line each. */
export function faultsOf(work: () => unknown): readonly string[] {
  try {
    work();
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    const faults = [thrown.message, ...thrown.others];
    assert.not.match(faults.join(''), '\n');
    return faults;
  }
  return [];
}

/** The addresses that the gateway would listen on, with their labels. */
export function addresses(written: Written): string[] {
  return load(written).listeners.map(({ host, port, label }) => `${host}:${port} ${label}`);
}
