// Texts that one or another database could take for something else, in the columns that hold text as it is: what is in
// documents is JSON of ASCII characters. NUL and lone surrogates are refused before they come this far.

import * as assert from 'uvu/assert';
import type { ApiKey, User } from '../../src/domain/account.ts';
import type { Store } from '../../src/persistence/store.ts';

const hostileTexts: readonly string[] = [
  `it's "quoted" \`so\``,
  `'; drop table users; --`,
  `\\'; drop table users; -- \\`,
  'C:\\temp\\new \\\\server\\share \\',
  'a backslash\\\nat the end of a line\\\r\nand of another',
  'line\nbreak\r\n\ttab',
  '$1 $2b$12$ :0 :x @y ? ?? {{z}} %_ [a] #t',
  'Ünïcödé 漢字 😀 👩‍👩‍👧 \u202e',
  '\u{1d11e}'.repeat(128),
  ' spaces ',
  '/* comment */ -- comment',
  'null',
  `N'x'`,
];

const at = '2026-01-02T03:04:05.678Z';
const hash = `$2b$12$${'a'.repeat(53)}`;

/** Saves accounts made of these texts, and expects them back as they were. */
export async function keepsHostileTexts({ accounts, audit }: Store): Promise<void> {
  const users = hostileTexts.map(
    (text, index): User => ({
      id: `u${index}`,
      username: `user-${index}`,
      email: text,
      role: 'admin',
      isActive: true,
      passwordHash: hash,
      credentialsChangedAt: at,
      createdAt: at,
      updatedAt: at,
    }),
  );
  const keys = hostileTexts.map(
    (text, index): ApiKey => ({
      id: `k${index}`,
      name: text,
      permissions: ['gateway:read'],
      ownerId: `u${index}`,
      secretHash: 'f'.repeat(64),
      createdAt: at,
    }),
  );
  const entries = hostileTexts.map((text, index) => ({
    id: `a${String(index).padStart(2, '0')}`,
    at,
    actor: text,
    actorName: text,
    action: 'user.create',
    subject: text,
    status: 201,
  }));
  for (const user of users) await accounts.insertUser(user);
  for (const key of keys) await accounts.insertApiKey(key);
  await audit.append(entries);
  assert.equal(await accounts.listUsers(), users);
  assert.equal(await accounts.listApiKeys(), keys);
  assert.equal(await audit.list({ limit: 100 }), entries.toReversed());
  for (const [index, text] of hostileTexts.entries()) {
    const email = `${text} changed`;
    await accounts.changeUser(`u${index}`, { email, updatedAt: at });
    assert.is((await accounts.findUser(`u${index}`))?.email, email);
  }
}
