// All conformance suites of the store, for the specs of single databases.

import { createCipher } from '../../src/persistence/cipher.ts';
import type { Store } from '../../src/persistence/store.ts';
import { accountConformance } from '../conformance/accounts.ts';
import { approvalConformance } from '../conformance/approvals.ts';
import { auditConformance } from '../conformance/audit.ts';
import { definitionConformance } from '../conformance/definitions.ts';
import { listConformance } from '../conformance/lists.ts';
import { nodeConformance } from '../conformance/nodes.ts';
import { oauthConformance } from '../conformance/oauth.ts';
import { programConformance } from '../conformance/programs.ts';
import { sessionConformance } from '../conformance/sessions.ts';
import { settingConformance } from '../conformance/settings.ts';
import { storeConformance } from '../conformance/store.ts';
import { viewConformance } from '../conformance/views.ts';
import type { Suite } from '../helpers/suite.ts';

/** `open` gives an empty store each time; the test closes it. */
export function everyConformance(test: Suite, open: () => Promise<Store>): void {
  storeConformance(test, open);
  accountConformance(test, open);
  settingConformance(test, open);
  auditConformance(test, open);
  sessionConformance(test, open);
  nodeConformance(test, open);
  programConformance(test, open);
  viewConformance(test, open);
  oauthConformance(test, open);
  listConformance(test, open);
  definitionConformance(test, open);
  approvalConformance(test, open);
}

/** A cipher for stores that keep secrets. */
export const cipher = createCipher([new Uint8Array(32).fill(7)]);
