// The API as programs use it, over a real socket.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, api, journey, many, pass, restart, signal, submit, truth } from '../kit.mjs';

after(hook);

journey('the engine is restarted and goes on', async () => {
  const id = await submit({ wait: 'go' }, { key: 'req-1' });
  await submit({ sleep: 60_000 });
  await restart();
  assert.equal((await api(`procedures/${id}`)).body.procedure.reason, 'event');
  await signal(id, 'go');
  await pass(60_000);
  assert.deepEqual((await truth()).states, { Success: 2 });
});

journey('a page lists what the engine lists', async () => {
  await many({ wait: 'go' }, 3);
  const { body } = await api('procedures');
  assert.deepEqual(body.items.map((item) => item.id), (await truth()).rows.map((row) => row.id));
});
