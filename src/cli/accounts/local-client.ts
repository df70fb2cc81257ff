// Accounts in the database itself, without a gateway: for the first user of a machine, for scripts, and for a lost
// password. A gateway on the same database sees every change within 10 s.

import { Accounts, type NewApiKey, type NewUser } from '../../auth/accounts.ts';
import { AuditLog } from '../../auth/audit.ts';
import { forgetInitialPassword } from '../../auth/first-admin.ts';
import { Passwords } from '../../auth/passwords.ts';
import { apiKeyRecord, userRecord } from '../../http/routes/accounts.ts';
import { type Fields, fields } from '../answers.ts';
import type { CommandInput } from '../command.ts';
import { withDatabase } from '../database/open-database.ts';
import { readSettings } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';

/** Ids are those of the records. */
export interface AccountClient {
  users(): Promise<readonly Fields[]>;
  createUser(user: NewUser): Promise<Fields>;
  setPassword(id: string, password: string): Promise<Fields>;
  deleteUser(id: string): Promise<void>;
  apiKeys(): Promise<readonly Fields[]>;
  createApiKey(key: NewApiKey): Promise<Fields>;
  revokeApiKey(id: string): Promise<void>;
}

/** Opens the existing database that these options, the environment and gateway.yaml name, for the work. */
export async function withLocalClient<T>(
  input: CommandInput,
  terminal: Terminal,
  work: (client: AccountClient) => Promise<T>,
): Promise<T> {
  const config = readSettings(input, terminal);
  return withDatabase(config, terminal, async ({ store, name, initialPasswordFile }) => {
    terminal.note(`using the database ${name}`);
    const now = Date.now;
    const log = { warn: (...words: unknown[]) => terminal.note(`warning: ${words.at(-1)}`) };
    const audit = new AuditLog({ store: store.audit, log, now });
    let forgetting: Promise<void> | undefined;
    const accounts = new Accounts({
      store: store.accounts,
      passwords: new Passwords(),
      now,
      onChange: () => {}, // this process verifies no caller
      onAdminPasswordChanged: () => {
        forgetting = forgetInitialPassword(initialPasswordFile).catch(() => {
          // The next start of the gateway tries again.
          terminal.note(`warning: the first password of admin could not be deleted: ${initialPasswordFile}`);
        });
      },
      flushKeyUse: async () => {}, // and no key is used
    });
    const actor = { actor: 'local', actorName: actorName(terminal) };
    const record = (method: string, path: string, id: string) => {
      // A path of the API, as in all entries: `/auth/users/:user_id`.
      const subject = `${path.replace(/\/:.*$/, '')}/${id}`;
      audit.record({ ...actor, action: `${method} ${path}`, subject, status: 0 });
    };
    const client: AccountClient = {
      users: async () => (await accounts.users()).map((user) => fields(userRecord(user))),
      createUser: async (wanted) => {
        const user = await accounts.createUser(wanted);
        record('POST', '/auth/users', user.id);
        return fields(userRecord(user));
      },
      setPassword: async (id, password) => {
        const user = await accounts.changeUser(id, { password });
        record('PATCH', '/auth/users/:user_id', id);
        return fields(userRecord(user));
      },
      deleteUser: async (id) => {
        await accounts.deleteUser(id);
        record('DELETE', '/auth/users/:user_id', id);
      },
      apiKeys: async () => (await accounts.apiKeys()).map((view) => fields(apiKeyRecord(view))),
      createApiKey: async (wanted) => {
        const { apiKey, key } = await accounts.createApiKey(wanted);
        record('POST', '/auth/api-keys', apiKey.apiKey.id);
        return { ...apiKeyRecord(apiKey), key };
      },
      revokeApiKey: async (id) => {
        await accounts.revokeApiKey(id);
        record('DELETE', '/auth/api-keys/:key_id', id);
      },
    };
    try {
      return await work(client);
    } finally {
      await forgetting;
      await audit.close();
    }
  });
}

function actorName({ env }: Terminal): string {
  return env.SUDO_USER || env.USER || env.USERNAME || 'operator';
}
