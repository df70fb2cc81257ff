// What the templates of one server list, as it is learned for URIs. Where URIs lead is in backends.spec.ts and view-updates.spec.ts.

import * as assert from 'uvu/assert';
import { ResourceOwners } from '../../../src/protocol/aggregate/resource-owners.ts';
import { suite } from '../../helpers/suite.ts';
import { CLIENT } from '../listing-backends.ts';

const test = suite('owners of resources');

test('lists that did not change are read once, and changed ones again', async () => {
  let reads = 0;
  const listing = (...uris: string[]) =>
    uris.map((uri) => ({
      get uri() {
        reads += 1;
        return uri;
      },
    }));
  const lists = new Map([
    ['a', listing('x:1', 'x:2')],
    ['b', listing('x:2')],
  ]);
  const owners = new ResourceOwners({
    lists: {
      offers: () => true,
      announces: () => false,
      gather: async (list) =>
        list === 'resources' ? [...lists].map(([template, items]) => ({ template, items })) : [],
    },
    templates: () => ['a', 'b'],
  });
  const ownerOf = async (uri: string) =>
    (await owners.targetOf(uri, CLIENT, () => Promise.resolve()))?.template;
  assert.is(await ownerOf('x:2'), 'a');
  for (let times = 0; times < 3; times += 1) assert.is(await ownerOf('x:unknown'), undefined);
  assert.is(reads, 3);
  lists.set('a', listing('x:1'));
  assert.equal([await ownerOf('x:unknown'), await ownerOf('x:2'), reads], [undefined, 'b', 5]);
  lists.set('a', listing('x:1', 'x:2'));
  assert.equal([await ownerOf('x:unknown'), await ownerOf('x:2'), reads], [undefined, 'a', 8]);
});

test.run();
