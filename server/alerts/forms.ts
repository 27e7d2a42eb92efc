import type { Wording } from './wording.ts'
import type { Tone } from '../events/kinds.ts'

/** The form in which each service takes the wording of an alert. */

/** The colours of the dashboard's light theme. */
const COLOURS: Readonly<Record<Tone, string>> = Object.freeze({ ok: '#17793f', info: '#2059c4', drain: '#7242c4',
  warn: '#8f5400', bad: '#bf2530', idle: '#686c77' })
const TEAMS_COLOURS: Readonly<Record<Tone, string>> = Object.freeze({ ok: 'Good', info: 'Accent', drain: 'Accent',
  warn: 'Warning', bad: 'Attention', idle: 'Default' })

/** Plain text is what Slack neither formats nor searches for mentions such as `<!channel>`. */
export function slackBody ({ title, text, facts, url, tone }: Wording) {
  return { text: `${title}: ${text.slice(0, 200)}`.replace(/[&<>]/g, (character) => SLACK_ENTITIES[character]),
    attachments: [{ color: COLOURS[tone],
      blocks: [{ type: 'header', text: { type: 'plain_text', text: title, emoji: false } }, { type: 'section',
        text: { type: 'plain_text', text, emoji: false } }, { type: 'context',
        elements: [{ type: 'plain_text', text: facts.join(' · '), emoji: false }] },
        ...(url
          ? [{ type: 'actions',
            elements: [{ type: 'button', text: { type: 'plain_text', text: 'Open in clusterdeck' }, url }] }]
          : [])] }] }
}

const SLACK_ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

export function discordBody ({ title, text, facts, url, at, tone }: Wording) {
  return {
    username: 'clusterdeck',
    embeds: [{ title: plainMarkdown(title), description: plainMarkdown(text), ...(url && { url }),
      color: Number.parseInt(COLOURS[tone].slice(1), 16), footer: { text: facts.join(' · ') }, timestamp: at }],
    // The text of an app must not mention anybody.
    allowed_mentions: { parse: [] }
  }
}

/** Keeps Discord from formatting it. */
function plainMarkdown (text: string) {
  return text.replace(/[\\*_~`|<>[\]()#:@-]/g, '\\$&')
}

/** A card of Microsoft Teams, for the address of a workflow. A run of text is what it does not read as Markdown. */
export function teamsBody ({ title, text, facts, url, tone }: Wording) {
  return { type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null,
      content: { $schema: 'http://adaptivecards.io/schemas/adaptive-card.json', type: 'AdaptiveCard', version: '1.4',
        body: [richText({ text: title, weight: 'Bolder', size: 'Medium', color: TEAMS_COLOURS[tone] }),
          richText({ text }), richText({ text: facts.join(' · '), size: 'Small', isSubtle: true })],
        ...(url && { actions: [{ type: 'Action.OpenUrl', title: 'Open in clusterdeck', url }] }) } }] }
}

function richText (run: { text: string } & Record<string, string | boolean>) {
  return { type: 'RichTextBlock', inlines: [{ type: 'TextRun', ...run }] }
}

export function mailBody ({ title, text, facts, url, at }: Wording) {
  const when = `At ${at.slice(0, 19).replace('T', ' ')} UTC`
  return { subject: title, text: [text, '', ...facts, when, ...(url ? ['', url] : [])].join('\n') }
}
