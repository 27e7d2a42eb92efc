import { formatCommit, formatExactDuration } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { previewFacts } from '../preview-facts.ts'
import { linesOf } from './output.ts'
import type { Preview } from '../preview.ts'
import type { Context } from './commands.ts'

const WIDTH = 14

/** Prints what a deploy or a rollback would do, and fails as that would. `order`: as for a rollout. */
export async function previewRollout ({ api, answer }: Context, order: Record<string, unknown>) {
  const preview: Preview = await api.post('/rollouts/preview', order)
  answer(preview, () => previewText(preview))
  const [first] = preview.refusals
  if (!first) return
  throw new DeckError(first.code,
    `the ${preview.kind} would be refused: ${preview.refusals.map(({ message }) => message).join('; ')}`)
}

function previewText (preview: Preview) {
  const rows = [...previewFacts(preview, formatExactDuration).map(({ name, value }) => [name.toLowerCase(), value]),
    ...(preview.commits?.added.items ?? []).map((commit) => commitRow('+', commit)),
    ...(preview.commits?.removed.items ?? []).map((commit) => commitRow('-', commit)),
    ...preview.warnings.map((warning) => ['warning', warning])]
  return `${preview.kind}: a dry run, nothing was changed\n${linesOf(rows, WIDTH)}`
}

function commitRow (sign: '+' | '-',
  { commit, subject, author }: NonNullable<Preview['commits']>['added']['items'][number])
{
  return ['', `${sign} ${formatCommit(commit)} ${subject} (${author})`]
}
