// `stagedoor gateway logout`: forgets the kept token of a gateway. It is gone from this machine and expires by itself.

import { CredentialsFile, credentialsPath } from '../accounts/credentials-file.ts';
import type { CommandDefinition } from '../command.ts';
import { UsageError } from '../failures.ts';
import { gatewayUrls } from '../remote.ts';

/** Row of the command table. It asks no gateway, so it works when there is none any more. */
export const logout: CommandDefinition = {
  name: 'gateway logout',
  positionals: '',
  summary: 'Forget the token of a gateway, or of all',
  options: [
    {
      flags: '--url <url>',
      description: 'Gateway to log out of; default STAGEDOOR_URL, else http://127.0.0.1:8080 and :8000',
    },
    { flags: '--all', description: 'Forget the tokens of all gateways' },
    { flags: '--json', description: 'Print the URLs as JSON' },
  ],
  examples: ['gateway logout'],
  run: async (input, terminal) => {
    const file = new CredentialsFile(credentialsPath(terminal.env));
    const isAll = input.switch('all') === true;
    if (isAll && input.text('url') !== undefined) throw new UsageError('--all and --url: keep one');
    const urls = isAll
      ? file.forgetAll()
      : gatewayUrls(input.text('url'), terminal.env).filter((url) => file.forget(url));
    const { json } = await import('../output.ts');
    if (input.switch('json')) terminal.print(json({ logged_out: urls }));
    else terminal.print(urls.length === 0 ? 'Nobody was logged in.' : `logged out of ${urls.join(', ')}`);
    return 0;
  },
};
