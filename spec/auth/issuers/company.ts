// Accounts of a company over the memory store, with a provider whose answers the spec decides.

import { CompanyAccounts } from '../../../src/auth/issuers/company-accounts.ts';
import type { ProviderAnswer } from '../../../src/auth/issuers/identity-provider.ts';
import type { ProviderSetting } from '../../../src/config/provider-settings.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';

export const MINUTE_MS = 60_000;
export const SETTING: ProviderSetting = {
  ...{ id: 'login.example.com', issuer: 'https://login.example.com', clientId: 'gw', clientSecret: 'unused' },
  ...{ label: 'Example', claims: {}, require: [], sessionMs: 12 * 60 * MINUTE_MS },
  roles: [['staff', { role: 'user' }]],
};

interface StartOptions {
  readonly keepsSecrets?: boolean;
  /** The clock of the database. Default: it has none of its own. */
  readonly serverTimeMs?: () => number;
}

/** The accounts of one provider, whose clocks and answers the spec decides. */
export function started({ keepsSecrets = true, serverTimeMs }: StartOptions = {}) {
  let nowMs = Date.parse('2030-01-01T00:00:00Z');
  let monotonicMs = 0;
  let answer = async (): Promise<ProviderAnswer> => said(['staff']);
  const asked: string[] = [];
  const warnings: string[] = [];
  const store = new MemoryStore();
  /** A node of the deployment. */
  const node = () =>
    new CompanyAccounts({
      ...{ store: store.oauth, accounts: store.accounts, keepsSecrets },
      clock: {
        ...systemClock,
        wall: () => nowMs,
        now: () => monotonicMs,
        alarm: (_, run) => systemClock.alarm(0, run),
      },
      ...(serverTimeMs && { serverTimeMs: async () => serverTimeMs() }),
      ...{ onChange: () => {}, warn: (line) => void warnings.push(line) },
      providers: [
        {
          setting: SETTING,
          refresh: (token) => {
            asked.push(token);
            return answer();
          },
        },
      ],
    });
  const company = node();
  const said = (groups: readonly string[]): ProviderAnswer => ({
    ...{ subject: 's-1', refreshToken: `token ${asked.length}` },
    claims: { sub: 's-1', preferred_username: 'eve', groups },
  });
  const isActive = async () => (await store.accounts.findUserByName('eve'))?.isActive;
  return {
    ...{ store, company, node, asked, said, isActive, warnings },
    pass: (ms: number) => {
      nowMs += ms;
      monotonicMs += ms;
    },
    /** Somebody sets the wall clock. */
    step: (ms: number) => {
      nowMs += ms;
    },
    answerWith: (next: () => Promise<ProviderAnswer>) => {
      answer = next;
    },
  };
}
