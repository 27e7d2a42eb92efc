import { formatBytes, formatCommit, formatNames } from '../../public/format.ts'
import { changedParts } from '../config/changed-parts.ts'
import type { Preview } from '../api/shapes.ts'

/** What a rollout would do, for people: the same in the page and on the command line. */
type Fact = { name: string, value: string }

const MAX_VALUE_CHARS = 60

/** When a changed option counts. */
const EFFECTS: Readonly<Record<Preview['options'][number]['takesEffect'], string>> = Object.freeze({
  deploy: 'with this deploy',
  now: 'at the next start, or at once with "clusterdeck config set"',
  start: 'at the next start'
})

export function previewFacts (preview: Preview, formatDuration: (ms: number) => string): Fact[] {
  const { release, from, plan, last } = preview
  const facts: [name: string, value: string | null][] = [['Release',
    release &&
    (release.isNew
      ? `${release.id}, new, after ${from}`
      : release.id === from
      ? `${release.id}, which runs already`
      : `${release.id}, after ${from}`)], ['Commit', release && commitText(release.git)], ['Package',
    release && ([release.package?.name, release.package?.version].filter(Boolean).join(' ') || null)], ['Commits',
    commitsText(preview)], ['Files', release && filesText(preview)], ['Build', buildText(preview)], ['Changed',
    release && changedText(preview)],
    ...preview.options.map((option) => ['Option', optionText(option)] as [string, string]), ['Plan', plan.text], [
    'Memory',
    memoryText(plan)
  ], ['Last three',
    last.length === 0
      ? 'no earlier one of this size'
      : last.map(({ rollout, state, tookMs }) => `rollout ${rollout} ${state} in ${formatDuration(tookMs)}`).join(
        ', '
      )], ['Folder', release && `${release.source ?? release.path} (${release.mode})`], ['Hooks',
    release && (release.hooks.join(', ') || null)]]
  return facts.flatMap(([name, value]) => value === null ? [] : [{ name, value }])
}

function commitText (git: NonNullable<Preview['release']>['git']) {
  if (!git) return null
  return [formatCommit(git.commit), git.branch && `on ${git.branch}`, git.isDirty && 'with changed files',
    git.subject && `“${git.subject}”`, git.author && `by ${git.author}`].filter(Boolean).join(' ')
}

function buildText ({ build }: Preview) {
  if (!build) return null
  const packages = build.packages &&
    (build.packages === 'kept' ? 'the packages of the same lock file are linked' : 'packages are installed')
  return [`${build.text}${build.isGuess ? ' (guessed)' : ''}`, ...(packages ? [packages] : [])].join('; ')
}

function memoryText ({ extraWorkers, extraBytes }: Preview['plan']) {
  if (extraWorkers === 0 || extraBytes === null) return null
  return `about ${formatBytes(extraBytes)} more meanwhile, for ${
    extraWorkers === 1 ? 'one worker' : `up to ${extraWorkers} workers`
  } beside the old ones`
}

function changedText ({ changed }: Preview) {
  if (!changed) return null
  const { environment } = changed
  return [...changedParts(changed), ...(environment.length > 0 ? [`variables ${formatNames(environment)}`] : [])].join(
    ', '
  ) || 'no known change'
}

function commitsText ({ commits }: Preview) {
  if (!commits) return null
  const counted = Object.entries(commits).filter(([, { items }]) => items.length > 0).map((
    [name, { items, hasMore }]
  ) => `${items.length}${hasMore ? ' or more' : ''} ${name}`)
  return counted.join(', ') || null
}

/** Null: not known in a rollback, as both releases ran from one folder */
function filesText ({ kind, files }: Preview): string | null {
  if (!files) return kind === 'deploy' ? 'which differ is not known' : null
  const counted = (['changed', 'added', 'removed'] as const).filter((change) => files[change] > 0).map((change) =>
    `${files[change]} ${change}`
  )
  if (counted.length === 0) return 'none differ'
  return `${counted.join(', ')}: ${
    formatNames(files.items.map(({ name }) => name), files.changed + files.added + files.removed)
  }`
}

function optionText ({ name, from, to, takesEffect }: Preview['options'][number]) {
  const change = from === null && to === null ? name : `${name} from ${valueText(from)} to ${valueText(to)}`
  return `${change}: ${EFFECTS[takesEffect]}`
}

function valueText (value: unknown) {
  if (value === null) return 'nothing'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS - 1)}…` : text
}
