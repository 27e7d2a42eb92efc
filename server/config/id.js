/** What events, crash groups, rollouts and workers are numbered with, as text: JavaScript has it as an exact number. */
export const ID = /^[1-9]\d{0,14}$/
