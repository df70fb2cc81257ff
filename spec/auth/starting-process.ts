// A process that starts together with others: it says that it is ready, waits for a word, and sends the
// signing secret that it found or made.

import { once } from 'node:events';
import { localSecret } from '../../src/auth/signing-secret.ts';

const [keyFile = ''] = process.argv.slice(2);
process.send?.('ready');
await once(process, 'message');
const secret = await localSecret({ keyFile });
process.send?.(Buffer.from(secret?.secret ?? []).toString());
process.disconnect();
