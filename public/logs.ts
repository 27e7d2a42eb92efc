import { BASE } from './base.ts'
import { copyText } from './copy.ts'
import { byId, findElement, setText } from './elements.ts'
import { createFleetTail } from './fleet-tail.ts'
import { createMatching } from './log-matching.ts'
import { isPattern, type Wanted } from './log-query.ts'
import { createTail, type State } from './log-tail.ts'
import { preference, setPreference } from './preferences.ts'
import { MAX_LINES, countLevels, createView, rawOf, type Item, type ViewState } from './log-view.ts'
import { formatCount } from './format.ts'
import { showTime, timeIn } from './time-field.ts'
import { showToast } from './toasts.ts'
import type { Level } from './log-levels.ts'

/** The page of the logs: its switches, the lines, and the tail that brings them unless older ones were asked for. */

const STATES: Readonly<Record<string, string>> = Object.freeze({ connecting: 'Connecting', live: 'Live',
  paused: 'Paused', lost: 'Connection lost, reconnecting' })
/** A second click within this time selects a word, and leads nowhere. */
const DOUBLE_CLICK_MS = 250
/** It moves to the line that the pointer is at. */
const copyLine = byId('log-copy-line')

let current: { panel: HTMLElement, end: () => void, start: () => void, stop: () => void } | null = null

attachLogs()
beginJump()
// The filters have changed, or the browser went back.
document.addEventListener('htmx:after:swap', attachLogs)
document.addEventListener('visibilitychange', toggleTail)
addEventListener('pagehide', () => current?.stop())
addEventListener('pageshow', toggleTail)

function attachLogs () {
  const panel = document.getElementById('log')
  if (current && panel === current.panel) return
  current?.end()
  current = panel && document.getElementById('log-lines') ? openPanel(panel) : null
  // Hides tools that do nothing without lines, or without live lines.
  const isLive = isFollowed(panel)
  for (const [id, isOf] of Object.entries({ 'log-tools': current !== null, 'log-follow': isLive,
    'log-clear': isLive }))
  {
    const tool = document.getElementById(id)
    if (tool) tool.hidden = !isOf
  }
  toggleTail()
}

function isFollowed (panel: HTMLElement | null) {
  return Boolean(panel?.dataset.stream ?? panel?.dataset.poll)
}

function tailOf ({ dataset: { stream, places, poll, since } }: HTMLElement, list: HTMLElement,
  handlers: { onEntries: (entries: Item[]) => void, onState: (state: State) => void })
{
  if (poll === undefined) return createTail({ url: `${BASE}${stream}`, places: String(places), ...handlers })
  const links: NodeListOf<HTMLAnchorElement> = list.querySelectorAll('a.line-time')
  const seen = Array.from(links, ({ href }) => String(new URL(href).searchParams.get('line')))
  return createFleetTail({ url: BASE + poll, since: String(since), seen, ...handlers })
}

/** Takes a time in the time zone of the page for a form that sends UTC. */
function beginJump () {
  const [time, around, search] = ['log-time', 'log-around', 'log-search'].map((id) =>
    findElement(`#${id}`, HTMLInputElement)
  )
  byId('log-jump-to').hidden = false
  const show = () => showTime(time, Date.parse(around.value) || undefined)
  show()
  document.addEventListener('clusterdeck:preference', show)
  time.addEventListener('change', (event) => {
    const at = timeIn(time)
    // The form asks for nothing before it is a time.
    if (at === null) return event.stopPropagation()
    around.value = at
    search.value = ''
  })
  // Who searches, or chooses a level, no longer looks around one place.
  for (const field of [search, byId('log-levels')])
    field.addEventListener('input', () => {
      around.value = time.value = ''
    })
}

/** Stops the tail while the page is hidden; it continues from the same place. */
function toggleTail () {
  if (document.hidden) current?.stop()
  else current?.start()
}

function openPanel (panel: HTMLElement) {
  const stopped = new AbortController()
  const isLive = isFollowed(panel)
  const [list, follow] = ['log-lines', 'log-follow'].map(byId)
  // Lines that are not live have none.
  const jump = document.getElementById('log-jump')
  let connection: State | 'connecting' = 'connecting'
  let isCleared = false
  const wanted = wantedOf(panel)
  const matching = wanted.q !== undefined && isPattern(wanted.q)
    ? createMatching(String(panel.dataset.matcher), wanted)
    : null
  const view = createView(list, showState, { mark: document.getElementById('log-mark'), wanted, matching })
  const tail = isLive ? tailOf(panel, list, { onEntries: (entries) => view.add(entries), onState }) : null

  const listenTo = (target: HTMLElement, type: string, handler: () => void) => {
    target.addEventListener(type, handler, { signal: stopped.signal })
  }
  if (jump) {
    listenTo(follow, 'click', () => view.follow(!isPressed(follow)))
    listenTo(jump, 'click', () => {
      view.follow(true)
      list.focus({ preventScroll: true })
    })
  }
  openLines(list, stopped.signal)
  listenTo(byId('log-copy'), 'click', () => copyLines(Array.from(list.querySelectorAll('.line'))))
  listenTo(byId('log-wrap'), 'click', () => wrapLines(!isPressed(byId('log-wrap'))))
  listenTo(byId('log-clear'), 'click', () => {
    isCleared = true
    view.clear()
  })
  wrapLines(preference('logs-wrap') === 'on')
  view.report()

  return { panel, start: () => tail?.start(), stop: () => tail?.stop(), end () {
    stopped.abort()
    tail?.stop()
    view.end()
  } }

  function onState (state: State) {
    if (state === connection) return
    if (state === 'lost') view.add([{ note: 'connection lost' }])
    else if (connection === 'lost') view.add([{ note: 'reconnected, output continues' }])
    connection = state
    view.report()
  }

  function showState ({ isFollowing, waiting, shown }: ViewState) {
    for (const { level, count } of countLevels(list))
      setText(document.querySelector(`[data-count=${level}]`), count ? formatCount(count) : '')
    byId('log-empty').hidden = list.childElementCount > 0
    if (!jump) return
    setPressed(follow, isFollowing)
    jump.hidden = isFollowing || waiting === 0
    setText(byId('log-jump-text'), `${formatCount(waiting)} new ${waiting === 1 ? 'line' : 'lines'} ↓`)
    if (isCleared) setText(byId('log-empty-title'), 'View cleared')
    panel.dataset.state = connection === 'live' && !isFollowing ? 'paused' : connection
    setText(byId('log-state'), STATES[panel.dataset.state])
    const kind = wanted.q === undefined && !wanted.level ? '' : 'matching '
    setText(byId('log-count'),
      `${formatCount(shown)} ${kind}${shown === 1 ? 'line' : 'lines'}, ${formatCount(MAX_LINES)} at most`)
  }

  function wrapLines (isOn: boolean) {
    setPressed(byId('log-wrap'), isOn)
    list.classList.toggle('is-wrapped', isOn)
    setPreference('logs-wrap', isOn ? 'on' : 'off')
    view.settle()
  }
}

function wantedOf ({ dataset: { q, chosen } }: HTMLElement): Wanted {
  return { q, level: chosen === undefined ? undefined : (chosen.split(',') as Level[]) }
}

/** A click on a line leads to what is around it; the button at the line copies it. */
function openLines (list: HTMLElement, signal: AbortSignal) {
  let opening: ReturnType<typeof setTimeout> | undefined
  list.addEventListener('click', (event) => {
    clearTimeout(opening)
    if (!(event.target instanceof Element) || event.target.closest('a, button')) return
    const link = event.target.closest('.line')?.querySelector('a.line-time')
    if (!link || event.detail > 1) return
    opening = setTimeout(() => {
      if (String(getSelection()) === '') link.dispatchEvent(new MouseEvent('click', event))
    }, DOUBLE_CLICK_MS)
  }, { signal })
  list.addEventListener('pointerover', ({ target, pointerType }) => {
    const line = target instanceof Element && pointerType === 'mouse' ? target.closest('.line') : null
    if (!line || line === copyLine.parentElement) return
    copyLine.hidden = false
    line.append(copyLine)
  }, { signal })
  // By Enter from the list to its lines, from line to line by arrows, and by Enter to what is around one.
  list.addEventListener('keydown', (event) => {
    const step = event.target === list ? { Enter: 0 }[event.key] : { ArrowUp: -1, ArrowDown: 1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const links: HTMLElement[] = Array.from(list.querySelectorAll('a.line-time'))
    const place = event.target === list
      ? links.findLastIndex((link) => link.offsetTop < list.scrollTop + list.clientHeight)
      : links.findIndex((link) => link === event.target)
    links[place + step]?.focus()
  }, { signal })
  copyLine.onclick = () => copyLines([copyLine.closest('.line')])
  const [marked, link] = ['log-copy-marked', 'log-copy-link'].map((id) => document.getElementById(id))
  if (!marked || !link) return
  marked.hidden = link.hidden = false
  marked.onclick = () => copyLines([byId('log-mark')])
  link.onclick = async () => tellCopied(await copyText(location.href), 'the link')
}

async function copyLines (lines: (Element | null)[]) {
  const texts = lines.flatMap((line) => line ? [rawOf(line)] : [])
  tellCopied(await copyText(texts.join('\n')), texts.length === 1 ? 'the line' : `${formatCount(texts.length)} lines`)
}

function tellCopied (isCopied: boolean, what: string) {
  if (isCopied) showToast(`Copied: ${what}.`, 'info')
  else showToast('The browser does not let this page copy. Select the text, or download it.')
}

function isPressed (button: HTMLElement) {
  return button.getAttribute('aria-pressed') === 'true'
}

function setPressed (button: HTMLElement, isOn: boolean) {
  button.setAttribute('aria-pressed', String(isOn))
}
