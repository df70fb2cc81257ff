// A gateway with sign-in, an instance and two users, for the specs of identity.

import * as assert from 'uvu/assert';
import { startEverything } from '../../fixtures/everything-server.ts';
import {
  type HarnessOptions,
  type McpHarness,
  PASSWORD,
  register,
  startGuarded,
} from '../programs/mcp-program.ts';
import { OAuthCaller } from './oauth-caller.ts';

export interface OAuthHarness extends McpHarness {
  readonly oauth: OAuthCaller;
}

/** The templates `tools` and `others`; the users `ada` and `bob` beside `admin`, all with the same password. */
export async function startWithSignIn(options: HarnessOptions = {}): Promise<OAuthHarness> {
  const backend = await startEverything({ name: 'tools' });
  const gateway = await startGuarded(options).catch(async (error: unknown) => {
    await backend.close();
    throw error;
  });
  for (const template of ['tools', 'others'])
    await register(gateway.admin, template, [{ id: 'one', endpoint: backend.url }]);
  for (const username of ['ada', 'bob']) {
    const user = { username, email: `${username}@localhost`, password: PASSWORD, role: 'user' };
    assert.is((await gateway.admin('POST /auth/users', user)).status, 201);
  }
  return {
    ...gateway,
    oauth: new OAuthCaller(gateway.url),
    remove: async () => {
      await gateway.remove();
      await backend.close();
    },
  };
}
