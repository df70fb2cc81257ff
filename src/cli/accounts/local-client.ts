// Accounts in the database itself, without a gateway: for the first user of a machine, for scripts, and for a lost
// password. A gateway on the same database sees every change within 10 s.

import { Accounts, type NewApiKey, type NewUser } from '../../auth/accounts.ts';
import { AuditLog } from '../../auth/audit.ts';
import { forgetInitialPassword } from '../../auth/first-admin.ts';
import { Passwords } from '../../auth/passwords.ts';
import type { User } from '../../domain/account.ts';
import { asGatewayError } from '../../domain/errors.ts';
import { apiKeyRecord, userRecord } from '../../http/routes/accounts.ts';
import { readCatalogue } from '../../templates/catalogue.ts';
import { type Fields, fields, issueText } from '../answers.ts';
import type { CommandInput } from '../command.ts';
import { openDatabase } from '../database/open-database.ts';
import { CommandFailure } from '../failures.ts';
import { readSettings } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';

/** Every method throws CommandFailure with the reason. Ids are those of the records. */
export interface AccountClient {
  users(): Promise<readonly Fields[]>;
  createUser(user: NewUser): Promise<Fields>;
  setPassword(id: string, password: string): Promise<Fields>;
  deleteUser(id: string): Promise<void>;
  apiKeys(): Promise<readonly Fields[]>;
  createApiKey(key: NewApiKey): Promise<Fields>;
  revokeApiKey(id: string): Promise<void>;
  templates(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Opens the database that these options, the environment and gateway.yaml name. It has to be there. */
export async function openLocalClient(input: CommandInput, terminal: Terminal): Promise<AccountClient> {
  const config = readSettings(input, terminal);
  const { store, name, initialPasswordFile } = await openDatabase(config, terminal);
  terminal.note(`using the database ${name}`);
  const now = Date.now;
  const audit = new AuditLog({
    store: store.audit,
    log: { warn: (...words: unknown[]) => terminal.note(`warning: ${words.at(-1)}`) },
    now,
  });
  const accounts = new Accounts({
    store: store.accounts,
    passwords: new Passwords(),
    now,
    onChange: () => {}, // this process verifies no caller
    onAdminPasswordChanged: () => {
      forgetting = forget();
    },
    flushKeyUse: async () => {}, // and no key is used
  });

  let forgetting: Promise<void> | undefined;
  const forget = async () => {
    await forgetInitialPassword(initialPasswordFile).catch(() => {
      // The next start of the gateway tries it again.
      terminal.note(`warning: the first password of admin could not be deleted: ${initialPasswordFile}`);
    });
  };
  const change = async <T extends { readonly id: string }>(
    method: string,
    path: string,
    work: () => Promise<T>,
  ): Promise<T> => {
    const changed = await withFailures(work);
    const actor = { actor: 'local', actorName: actorName(terminal) };
    // A path of the API, as in all entries: `/auth/users/:user_id`.
    const subject = `${path.replace(/\/:.*$/, '')}/${changed.id}`;
    audit.record({ ...actor, action: `${method} ${path}`, subject, status: 0 });
    return changed;
  };
  const changeUser = async (method: string, path: string, work: () => Promise<User>) =>
    fields(userRecord(await change(method, path, work)));
  return {
    users: () => withFailures(async () => (await accounts.users()).map((user) => fields(userRecord(user)))),
    createUser: (user) => changeUser('POST', '/auth/users', () => accounts.createUser(user)),
    setPassword: (id, password) =>
      changeUser('PATCH', '/auth/users/:user_id', () => accounts.changeUser(id, { password })),
    deleteUser: async (id) => {
      await change('DELETE', '/auth/users/:user_id', async () => {
        await accounts.deleteUser(id);
        return { id };
      });
    },
    apiKeys: () =>
      withFailures(async () => (await accounts.apiKeys()).map((view) => fields(apiKeyRecord(view)))),
    createApiKey: (input) =>
      change('POST', '/auth/api-keys', async () => {
        const { apiKey, key } = await accounts.createApiKey(input);
        return { ...apiKeyRecord(apiKey), key };
      }),
    revokeApiKey: async (id) => {
      await change('DELETE', '/auth/api-keys/:key_id', async () => {
        await accounts.revokeApiKey(id);
        return { id };
      });
    },
    templates: () =>
      withFailures(async () => {
        // A gateway on this database has those of its folder as well.
        const [{ templates: defined }, templates, instances] = await Promise.all([
          readCatalogue(config.templatesFolder),
          store.listTemplates(),
          store.listInstances(),
        ]);
        const saved = [...templates.map(({ name }) => name), ...instances.map(({ template }) => template)];
        return [...new Set([...defined.map(({ id }) => id), ...saved])];
      }),
    close: async () => {
      await forgetting;
      await audit.close();
      await store.close();
    },
  };
}

function actorName({ env }: Terminal): string {
  return env.SUDO_USER || env.USER || env.USERNAME || 'operator';
}

async function withFailures<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const error = asGatewayError(thrown);
    // An unexpected error is shown with its stack.
    if (error.code === 'INTERNAL_ERROR') throw thrown;
    const reason = error.facts.items?.map(issueText).join('; ') ?? error.message;
    throw new CommandFailure(`${reason.replace(/\.$/, '')} (${error.code})`, { cause: thrown });
  }
}
