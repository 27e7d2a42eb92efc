import { formatCommit, formatExactDuration } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { previewFacts } from '../preview-facts.js'
import { oneLine } from '../system/one-line.js'

/** @typedef {import('../preview.js').Preview} Preview */

const WIDTH = 14

/**
 * Prints what a deploy or a rollback would do, and fails as that would.
 * @param {import('./commands.js').Context} context @param {Record<string, unknown>} order  as for a rollout
 */
export async function previewRollout ({ api, answer }, order) {
  /** @type {Preview} */
  const preview = await api.post('/rollouts/preview', order)
  answer(preview, () => previewText(preview))
  const [first] = preview.refusals
  if (!first) return
  throw new DeckError(/** @type {import('../errors.js').ErrorCode} */ (first.code), `the ${preview.kind} would be refused: ${preview.refusals.map(({ message }) => message).join('; ')}`)
}

/** @param {Preview} preview */
function previewText (preview) {
  const rows = [
    ...previewFacts(preview, formatExactDuration).map(({ name, value }) => [name.toLowerCase(), value]),
    ...(preview.commits?.added.items ?? []).map((commit) => commitRow('+', commit)),
    ...(preview.commits?.removed.items ?? []).map((commit) => commitRow('-', commit)),
    ...preview.warnings.map((warning) => ['warning', warning])
  ]
  return [`${preview.kind}: a dry run, nothing was changed`, ...rows.map(([name, value]) => `${name.padEnd(WIDTH)}${oneLine(value)}`)].join('\n')
}

/** @param {'+' | '-'} sign @param {NonNullable<Preview['commits']>['added']['items'][number]} commit */
function commitRow (sign, { commit, subject, author }) {
  return ['', `${sign} ${formatCommit(commit)} ${subject} (${author})`]
}
