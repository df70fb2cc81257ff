// Rows of the table of settings (../settings.ts): what is kept where, for which node, and which programs may be kept.

import { LIMITS } from '../../domain/limits.ts';
import { PASS_ENV } from '../../domain/pass-env.ts';
import { setting } from '../setting.ts';
import { commandPatterns, list, nodeName, path, secretText, url, variableName } from '../setting-types.ts';

export const STORAGE_SETTINGS = {
  databaseUrl: setting({
    key: 'database_url',
    flag: 'database',
    variable: 'DATABASE_URL',
    secret: true,
    kind: url('a database URL such as sqlite:///gateway.db'),
    default: 'sqlite:///gateway.db',
    doc: 'Where registry and accounts are kept; `memory://` forgets them at the end. See docs/guides/databases.md.',
  }),
  encryptionKeys: setting<readonly string[]>({
    key: 'encryption_key',
    variable: 'ENCRYPTION_KEY',
    secret: true,
    kind: list(secretText(LIMITS.secretBytes)),
    default: [],
    defaultText: 'derived from the signing secret, unless that is in the database',
    doc: 'Encrypts environment variables and headers of instances in the database. The first key encrypts, all decrypt.',
  }),
  stateFolder: setting({
    key: 'state_dir',
    flag: 'state-dir',
    variable: 'STATE_DIR',
    kind: path,
    default: undefined,
    defaultText: 'the folder of the SQLite file, else ~/.local/state/stagedoor',
    doc: 'Folder for what belongs to this machine: the first password of `admin`.',
  }),
  nodeId: setting<string | undefined>({
    key: 'node_id',
    flag: 'node-id',
    variable: 'NODE_ID',
    kind: nodeName,
    default: undefined,
    defaultText: '`local` on SQLite, else host name and first port',
    doc: 'Name of this gateway among those on the same database. Programs are run by the node that registered them.',
  }),
  templatesFolder: setting({
    key: 'templates_dir',
    flag: 'templates-dir',
    variable: 'TEMPLATES_DIR',
    kind: path,
    default: undefined,
    defaultText: 'those that come with stagedoor',
    doc: 'Folder of template definitions, `<id>/template.json`, for `POST /servers`.',
  }),
  allowedCommands: setting<readonly (readonly string[])[]>({
    key: 'stdio.allowed_commands',
    flag: 'allowed-commands',
    variable: 'ALLOWED_COMMANDS',
    kind: commandPatterns,
    default: [],
    doc: 'Commands that may be registered without the scope `admin`: lists of words, `*name` standing for any one word.',
  }),
  passEnv: setting<readonly string[] | undefined>({
    key: 'stdio.pass_env',
    flag: 'pass-env',
    variable: 'PASS_ENV',
    kind: list(variableName),
    default: undefined,
    defaultText: `those about proxies and certificates: ${PASS_ENV.join(', ')}`,
    doc: 'Variables of the gateway that programs get besides PATH, HOME and LANG; replaces the default list. A URL with credentials is passed only when its variable is named here.',
  }),
} as const;
