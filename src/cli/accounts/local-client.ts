// Accounts in the database itself, without a gateway: for the first user of a machine, for scripts, and for a lost
// password. A gateway on the same database sees every change within 10 s.

import { Accounts } from '../../auth/accounts/accounts.ts';
import { forgetInitialPassword } from '../../auth/accounts/first-admin.ts';
import { Passwords } from '../../auth/accounts/passwords.ts';
import { AuditLog } from '../../auth/audit/audit-log.ts';
import { Grants } from '../../auth/grants/grants.ts';
import { ANONYMOUS } from '../../domain/accounts/principal.ts';
import { definedFields } from '../../domain/json/json.ts';
import { systemClock } from '../../domain/time/clock.ts';
import { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { BytesReply, PiecesReply } from '../../http/replies/reply.ts';
import type { HttpRequest } from '../../http/request.ts';
import { userRoutes } from '../../http/routes/accounts/accounts.ts';
import { apiKeyRoutes } from '../../http/routes/accounts/api-keys.ts';
import { grantRoutes } from '../../http/routes/accounts/grants.ts';
import type { RawInput } from '../../http/routing/route.ts';
import type { Services } from '../../http/services.ts';
import type { CommandInput } from '../command.ts';
import { withDatabase } from '../database/open-database.ts';
import type { Remote } from '../remote/remote.ts';
import { readSettings } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';

/** Takes the requests of the /auth routes. */
export type AccountClient = Pick<Remote, 'request'>;

const LOCAL_ROUTES = [...userRoutes, ...apiKeyRoutes, ...grantRoutes];

/** Runs `work` with the /auth routes on the database itself, without a gateway; then closes the database. */
export async function withLocalClient<T>(
  input: CommandInput,
  terminal: Terminal,
  work: (client: AccountClient) => Promise<T>,
): Promise<T> {
  const config = readSettings(input, terminal);
  return withDatabase(config, terminal, async ({ store, name, initialPasswordFile }) => {
    terminal.note(`using the database ${name}`);
    const { wall } = systemClock;
    const log = { warn: (...words: unknown[]) => terminal.note(`warning: ${words.at(-1)}`) };
    // The gateway may have other settings than this command, which therefore deletes nothing by them.
    const settings = { ...config.audit, keptCalls: Number.MAX_SAFE_INTEGER, keptDays: 0 };
    const audit = new AuditLog({ store: store.audit, log, clock: systemClock, settings });
    let forgetting: Promise<void> | undefined;
    const accounts = new Accounts({
      store: store.accounts,
      passwords: new Passwords(systemClock),
      wall,
      keepsFirstAdmin: config.oauth.providers.length > 0,
      onAdminPasswordChanged: () => {
        forgetting = forgetInitialPassword(initialPasswordFile).catch(() => {
          // The next start of the gateway tries again.
          terminal.note(`warning: the first password of admin could not be deleted: ${initialPasswordFile}`);
        });
      },
    });
    const grants = new Grants({
      store: store.oauth,
      accounts: store.accounts,
      clock: systemClock,
      onEnded: () => {},
      warn: log.warn,
    });
    const { SUDO_USER, USER, USERNAME } = terminal.env;
    const actor = { actor: 'local', actorName: SUDO_USER || USER || USERNAME || 'operator' };
    const services = { auth: { accounts, grants, roles: config.roles }, scheduler: new TaskScheduler() };
    const client = clientOf(services as Services, (action, subject) =>
      audit.record({ ...actor, action, subject, status: 0 }),
    );
    try {
      return await work(client);
    } finally {
      await forgetting;
      await grants.use.close();
      await audit.close();
    }
  });
}

/** Runs the routes of accounts in this process. `record` gets what was changed. */
function clientOf(services: Services, record: (action: string, subject: string) => void): AccountClient {
  return {
    request: async (path, { method = 'GET', body = {} } = {}) => {
      const [, list = path, id = ''] = /^(\/auth\/.+)\/(.+)$/.exec(path) ?? [];
      const isMeant = (written: string) => (id === '' ? written === list : written.startsWith(`${list}/:`));
      const route = LOCAL_ROUTES.find((each) => each.method === method && isMeant(each.path));
      if (route === undefined) throw new Error(`no route for ${method} ${path}`);
      // The parts of a request that the routes of accounts use.
      const input: Partial<RawInput> = {
        params: { user_id: id, key_id: id, grant_id: id },
        query: '',
        body: definedFields(Object(body)),
        principal: ANONYMOUS,
        request: {} as HttpRequest, // it has no address
      };
      const reply = (await route.run(input as RawInput, services)) as BytesReply | PiecesReply;
      const text = reply.kind === 'pieces' ? await wholeText(reply) : reply.bytes;
      if (method !== 'GET') record(`${method} ${route.path}`, reply.trail?.subject ?? path);
      return text && JSON.parse(String(text));
    },
  };
}

async function wholeText({ first, others }: PiecesReply): Promise<string> {
  let text = first;
  for (;;) {
    const { value, done } = await others.next();
    text += value;
    if (done === true) return text;
  }
}
