import assert from 'node:assert/strict'
import { test } from 'node:test'
import { marked } from 'marked'
import { issueOf } from '../../server/crash-issue.ts'
import { aCrash } from '../support/crash-record.ts'

const PLACE = { host: 'web-1', app: 'shop' }
const GROUP = { id: 12, kind: 'exception', cause: 'crash', errorName: 'TypeError', message: 'total is not a function',
  culprit: 'sum (src/shop.js)', count: 7, firstSeenAt: '2026-01-01T00:00:00.000Z',
  lastSeenAt: '2026-01-02T00:00:00.000Z', firstRelease: 'r1', lastRelease: 'r3' }
const LINES = [11, 12, 13].map((number) => ({ number, text: `line ${number}` }))
const ESCAPE = '\u001b'
const HOSTILE =
  '@everyone #1 ![x](https://evil.example/x.png) </code><script>alert(1)</script> ``` ```` \n# head\n\u202egnp ' +
  ESCAPE + '[31mred'

test('an issue says what crashed, where, since when, with which stack, and on what', () => {
  const { title, body } = issueOf(GROUP, aCrash(), { lines: [LINES, null, null, null], ...PLACE })
  assert.equal(title, 'TypeError: total is not a function, in sum (src/shop.js)')
  for (const part of [
    'Seen 7 times, first at 2026-01-01T00:00:00.000Z in `r1`, last at 2026-01-02T00:00:00.000Z in `r3`.',
    '`src/shop.js:12` in `sum`\n\n```text\n     11  line 11\n>    12  line 12\n     13  line 13\n```',
    '### Stack\n\n```text\nTypeError: total is not a function\n    at sum (/srv/app/src/shop.js:12:34)\n```',
    '### Caused by\n\n```text\nError: no cart\n    at load\n```',
    '### Requests in flight\n\n```text\nPOST /checkout for 12 ms\n```',
    '- Release: `r1`\n- Node.js: `v20.20.2`\n- Lived for: `1 min 05 s`\n- Exit: `code 1`\n- Memory: `64.0 MB`\n- Crash group: `12 of clusterdeck`'
  ]) assert.ok(body.includes(part), `${part}\nin\n${body}`)
})

test('what an app has thrown mentions nobody, links nowhere, shows no picture and ends no block', async () => {
  const crash = aCrash({ errorMessage: HOSTILE, stack: HOSTILE, stderr: [HOSTILE],
    requests: [{ method: 'GET', path: HOSTILE, ageMs: 1 }],
    causes: [{ depth: 1, errorName: 'E', errorMessage: HOSTILE, stack: null }],
    frames: [{ function: HOSTILE, file: HOSTILE, line: 12, column: 1, isInApp: true }], release: HOSTILE })
  const { title, body } = issueOf({ ...GROUP, message: HOSTILE, culprit: HOSTILE, firstRelease: HOSTILE }, crash, {
    lines: [[{ number: 12, text: HOSTILE }]],
    ...PLACE
  })
  assert.ok(!/\p{Cf}/u.test(title + body) && !(title + body).includes(ESCAPE))
  assert.ok(title.length <= 120 && !title.includes('\n'))
  const seen = (await marked(body)).replace(/<(pre|code)[^]*?<\/\1>/g, '')
  assert.doesNotMatch(seen, /everyone|evil|<script|<img|<h1/)
})

test('a group of which no crash is kept is an issue too, and one that is too long is cut', () => {
  const { body } = issueOf({ ...GROUP, count: 1, errorName: null, message: null }, null, { lines: [], ...PLACE })
  assert.match(body,
    /^```text\nexception, in sum \(src\/shop\.js\)\n```\n\nSeen once, at \S+ in `r1`\.\n\n### Facts\n\n- Cause: `crash, exception`\n- App: `shop`\n- Host: `web-1`\n- Crash group: `12 of clusterdeck`\n$/)
  assert.ok(issueOf(GROUP, aCrash({ stack: 'x'.repeat(1e6) }), { lines: [], ...PLACE }).body.length < 20_000)
})
