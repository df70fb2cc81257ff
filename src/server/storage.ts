// Opens the signing secret, the encryption keys and the database, in this order: a secret outside the
// database encrypts values in it. For the server, and for commands that work without one.

import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import {
  encryptionKeys,
  localSecrets,
  type SigningSecrets,
  sharedSecret,
} from '../auth/secrets/signing-secret.ts';
import type { Config } from '../config/config.ts';
import { kubeconfigs, POD_ACCOUNT } from '../discovery/cluster-files.ts';
import { createCipher } from '../persistence/cipher.ts';
import { type DatabaseDescription, describeDatabase } from '../persistence/database-url.ts';
import { type OpenStoreOptions, openStore } from '../persistence/open-store.ts';
import type { Store } from '../persistence/store.ts';
import { ownsGroup } from '../programs/process-group.ts';
import { credentialsPath, homeFolder, type ProtectedPath } from '../templates/command-exposure.ts';
import { fileOfNode } from './nodes/node-lock.ts';

export interface Storage {
  readonly store: Store;
  /** Whether values are encrypted, or end with this process: secrets of others may be stored. */
  readonly keepsSecrets: boolean;
  /**
   * The secrets that sign tokens; one is created in the database if there is none. Not called by commands, which
   * sign nothing.
   */
  signingSecrets(): Promise<SigningSecrets>;
  /** File for the password of the first admin of this database, for starts without a terminal. */
  readonly initialPasswordFile: string;
  /** Paths that no command may get as an argument, in addition to the database and its files. */
  readonly protectedPaths: readonly ProtectedPath[];
  /**
   * True when new programs may run on any node: see RegistrationContext. Elsewhere nodes have no leases, must not run
   * such programs, or cannot use those of each other.
   */
  readonly isAnyDefault: boolean;
}

interface StorageOptions
  extends Pick<
    OpenStoreOptions,
    'migrations' | 'advice' | 'signal' | 'onNotice' | 'onWarning' | 'onRefusal'
  > {
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Throws StoreOpenError or ConfigError of one line, and leaves nothing open. */
export async function openStorage(config: Config, options: StorageOptions): Promise<Storage> {
  const { migrations, env = process.env } = options;
  const description = describeDatabase(config.databaseUrl, config.folder);
  const { file } = description;
  const keyFile = file === undefined ? undefined : join(dirname(file), 'gateway.key');
  // No secret is created where there is no database.
  const mayMakeKey = keyFile !== undefined && existsSync(migrations === 'apply' ? dirname(keyFile) : keyFile);
  const local = await localSecrets({
    configured: config.secretKeys,
    keyFile: mayMakeKey ? keyFile : undefined,
  });
  const keys = encryptionKeys(config.encryptionKeys ?? [], local ?? []);
  const store = await openStore(config.databaseUrl, {
    ...options,
    cwd: config.folder,
    cipher: keys.length === 0 ? undefined : createCipher(keys),
  });
  const initialPasswordFile = initialPasswordFileOf(config, { env });
  const { programs, forward } = config.cluster;
  const isDatabaseShared = description.place === 'server';
  return {
    store,
    keepsSecrets: keys.length > 0 || description.kind === 'memory',
    isAnyDefault: isDatabaseShared && programs && forward && ownsGroup,
    initialPasswordFile,
    protectedPaths: protectedPathsOf(config, env, initialPasswordFile),
    signingSecrets: async () =>
      local === undefined
        ? sharedSecret(store, migrations === 'apply')
        : { secrets: local, isInDatabase: false },
  };
}

function protectedPathsOf(
  config: Config,
  env: NonNullable<StorageOptions['env']>,
  initialPasswordFile: string,
): ProtectedPath[] {
  const tokens = credentialsPath(env);
  return [
    { path: initialPasswordFile, what: 'the file of the first password of `admin`' },
    { path: stateFolderOf(config, env), what: 'the state folder of this gateway' },
    { path: tokens, what: 'the tokens of `gateway login`' },
    { path: join(dirname(tokens), 'environments.json'), what: 'the keys of named gateways' },
    ...config.files.map((path) => ({ path, what: 'the configuration of this gateway' })),
    { path: config.registryFile, what: 'the registry file of this gateway' },
    { path: config.templatesFolder, what: 'the folder of templates of this gateway', isWhole: true as const },
    ...kubeconfigs(env).map((path) => ({ path: resolve(path), what: 'a kubeconfig of this gateway' })),
    {
      path: env.KUBERNETES_SERVICE_HOST && POD_ACCOUNT,
      what: 'the account of this pod',
      isWhole: true as const,
    },
    ...[config.tls.key, config.cluster.tls.key].map((path) => ({
      path,
      what: 'the private key of this gateway',
    })),
  ].flatMap(({ path, ...rest }) => (path ? [{ path, ...rest }] : []));
}

/** The folder for the state on this machine: of the setting, else of the SQLite file, else of the user. */
export function stateFolderOf(
  { stateFolder, databaseUrl, folder }: Pick<Config, 'stateFolder' | 'databaseUrl' | 'folder'>,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  if (stateFolder !== undefined) return stateFolder;
  const { file } = describeDatabase(databaseUrl, folder);
  return file === undefined ? userStateFolder(env) : dirname(file);
}

/** The pipe of the reaper of a node: next to a database file, else in the state folder. Undefined for a database in memory. */
export async function reaperPipeOf(config: Config, nodeId: string): Promise<string | undefined> {
  const { place, file, printable } = describeDatabase(config.databaseUrl, config.folder);
  if (file !== undefined) return fileOfNode(await realpath(file), nodeId, 'reaper');
  if (place === 'memory') return undefined;
  const name = hash('sha256', JSON.stringify([printable, nodeId])).slice(0, 16);
  return join(stateFolderOf(config), `${name}.reaper`);
}

/** The file that the first admin's password is in after a start without a terminal. `pid`: of the gateway. */
export function initialPasswordFileOf(
  config: Pick<Config, 'stateFolder' | 'databaseUrl' | 'folder'>,
  { env, pid = process.pid }: { readonly env: StorageOptions['env']; readonly pid?: number | undefined },
): string {
  const description = describeDatabase(config.databaseUrl, config.folder);
  return join(stateFolderOf(config, env), passwordFileName(description, pid));
}

/** Different for each database: databases may share a folder, and the password is valid for only one of them. */
function passwordFileName({ place, file, printable }: DatabaseDescription, pid: number): string {
  const name = 'initial-admin-password';
  if (file !== undefined) return basename(file) === 'gateway.db' ? name : `${name}-${basename(file)}`;
  if (place === 'memory') return `${name}-${pid}`;
  return `${name}-${hash('sha256', printable).slice(0, 8)}`;
}

/** Source: XDG Base Directory Specification. */
function userStateFolder(env: Readonly<Record<string, string | undefined>>): string {
  const named = [env.XDG_STATE_HOME, env.LOCALAPPDATA].find((path) => isAbsolute(path ?? ''));
  const base = named ?? join(homeFolder(env), '.local', 'state');
  return join(base, 'stagedoor');
}
