/** SPEC section 5, β: the task pipeline. */
export const TASKS = {
  'tasks.seed-examples':
    'Every printed example of the task tools works as printed, read through the envelope.',
  'tasks.pattern-b': 'A domain error of a task tool is {ok: true, data: {ok: false, error}} with isError.',
  'tasks.strict':
    'The objects of all five tools are strict: an unknown field is refused by name, with the one meant.',
  'tasks.output-schema': 'Every answer fits the output schema the tool declares, with nothing beside it.',
  'tasks.not-found':
    'An id that leads nowhere is ERR_TASK_NOT_FOUND with the field and the nearest ids, also for parent_id and depends_on.',
  'tasks.effects':
    'The audit row of a write carries the effects of every row whose facts the write changed, and of no other.',
  'tasks.readonly': 'Where the mode does not admit a task tool the refusal is no domain error.',

  'tasks.create.fields': 'task_create takes each of its twelve fields up to its limit and nothing beyond it.',
  'tasks.create.defaults':
    'A task that names nothing else is normal, unassigned, without labels, not proof_grade, at 0 percent.',
  'tasks.create.output':
    'task_create answers task_id, status, created_at, created_by, sequence and workflow.',
  'tasks.update.fields':
    'task_update takes each of its fields up to its limit and nothing beyond it, and stores what it took.',
  'tasks.update.something': 'task_update needs at least one field besides task_id.',
  'tasks.update.output':
    'task_update answers task_id, status, progress, updated_at, updated_by, and previous_status where it moved.',
  'tasks.update.only': 'task_update changes what was asked and nothing else.',
  'tasks.update.warnings': 'What was done as asked but may not be meant is done with a warning.',
  'tasks.get.fields': 'task_get answers every field of the task and leaves out what has no value.',
  'tasks.get.thought-trail': 'With include_thought_trail it adds the ids of the thoughts, in order.',
  'tasks.get.dependents': 'With include_dependents it adds the ids of the children.',

  'tasks.priorities': 'Priorities are low, normal, high and critical, and nothing else.',
  'tasks.workflow.kanban': 'Every arrow of the kanban table can be walked.',
  'tasks.workflow.pipeline': 'Every arrow of the pipeline table can be walked.',
  'tasks.workflow.closed':
    'Every pair outside the table is refused with the allowed ones, changes no state, and is audited.',
  'tasks.workflow.walk': 'No path of calls in either workflow reaches a state the table forbids.',
  'tasks.workflow.kept': 'A task keeps the workflow it was created with.',
  'tasks.workflow.default': 'COLIBRI_WORKFLOW is the workflow of a task that names none; kanban when unset.',
  'tasks.blocked.reason': 'blocked needs a blocked_reason, which is gone again when the task moves on.',
  'tasks.finish.thought':
    'Finishing without a thought is ERR_WRITEBACK_REQUIRED with missing_fields [thought_record].',
  'tasks.finish.proof':
    'Finishing a proof_grade task whose newest thought is not sealed, or with an open session of its own, is ERR_PROOF_REQUIRED.',
  'tasks.finish.progress': 'Finishing sets progress to 100.',
  'tasks.cancel.free': 'Cancelling needs neither a thought nor a session.',

  'tasks.project.slug': 'A project is a slug of 1 to 64 characters from a-z, 0-9 and -.',
  'tasks.project.opened': 'Without COLIBRI_PROJECTS, creating a task opens its project.',
  'tasks.project.unknown':
    'Asking task_next_actions about a project that does not exist is ERR_PROJECT_NOT_FOUND with the nearest.',
  'tasks.project.listed': 'With COLIBRI_PROJECTS creating in another project is ERR_PROJECT_NOT_FOUND too.',
  'tasks.project.active':
    'COLIBRI_PROJECT is the project of task_list and task_next_actions where they name none.',

  'tasks.dependencies.unmet':
    'Unmet dependencies are unfinished children plus unfinished depends_on, each counted once.',
  'tasks.dependencies.cancelled': 'A cancelled child or dependency counts as met.',
  'tasks.dependencies.cycle':
    'A cycle through children and depends_on is ERR_CIRCULAR_DEPENDENCY with the cycle spelled out.',

  'tasks.list.filters':
    'task_list filters by project, status, priority, assignee, label and time of creation, all at once.',
  'tasks.list.dates': 'created_after and created_before take any ISO-8601 time in any zone.',
  'tasks.list.search': 'search finds words and prefixes in title and description, and what was just written.',
  'tasks.list.search-safe': 'search takes any text of up to 8,000 characters without error.',
  'tasks.list.paging':
    'Pages of limit (50, at most 500) and offset together are every match once; total_count counts them all.',
  'tasks.list.sorting':
    'sort_by created, updated, priority and progress go both ways; newest change first when unset.',
  'tasks.list.output': 'A listed task has the nine documented fields.',
  'tasks.next.members':
    'Next actions are todo tasks and pipeline tasks that are not final; one that is under way only for its holder.',
  'tasks.next.hint': 'Where nothing is ready, a hint says what there is and which call brings one forward.',
  'tasks.next.order': 'Next actions are the ready ones first, then by priority, then oldest.',
  'tasks.next.limit': 'Next actions are 20 where nothing is said and at most 100.',
  'tasks.next.blocked': 'With include_blocked the blocked tasks come with their reasons.',
  'tasks.next.one-query': 'Next actions are one walk along an index, however many tasks are done.',

  'tasks.claim.one': 'Of two processes that make the same move at once exactly one succeeds.',
  'agents.loop':
    'The loop that the skill and the guide teach works as written: from nothing, with a backlog, beside others, after a restart.',
  'agents.claim.reasons': 'A refused claim says which step comes first, or who holds the task.',
  'agents.backlog':
    'Agents of several clients work a backlog to its end through crashes and takeovers, each task is done once, and all of it is replayed.',
  'tasks.hold.refused':
    'A status move of a task that another holds is ERR_TASK_HELD, with who, since when, last seen, and whether still there.',
  'tasks.hold.process':
    'Two processes of one actor are two holders while the first is there; one that is gone hands over to the other.',
  'tasks.hold.unseen': 'A holder that cannot be seen or sleeps counts as present.',
  'tasks.hold.assignee': 'The assignee gets the hold from any other holder, on the record.',
  'tasks.hold.takeover':
    'takeover takes the hold at any time, moves nothing unless asked to, is on the record, and the former holder is refused.',
  'tasks.hold.person': 'From the command line the person holds the task, without a process or a lease.',
  'tasks.hold.gateway': 'One process that serves many is a holder for each name.',
  'tasks.hold.end': 'A hold ends when the task leaves in_progress, that of a pipeline task when it ends.',
  'tasks.abandoned':
    'A task whose holder is gone or silent for the lease is shown as abandoned, and nothing is allowed by that.',
  'tasks.history':
    'include_history gives the calls on a task, newest first, bounded, refused ones and takeovers included.',
  'tasks.claim.holder': 'The other is refused with who holds the task and since when.',
  'tasks.concurrent.fields': 'Fields changed at the same time by two processes are never lost.',
  'tasks.concurrent.counts': 'Counts, sequences and the absence of cycles survive two processes at once.',

  'tasks.text': 'Any well-formed text in any text field comes back as it was sent, or is refused.',
  'tasks.numbers': 'Numbers have the same form before storing and after reading.',
  'tasks.names': 'Field names that live on prototypes are refused and reach no prototype.',
  'tasks.injection': 'No text in any field changes the schema or another row, and % and _ match themselves.',
  'tasks.repair': 'null, JSON text and numbers as text are taken where only one reading is possible.',

  'tasks.model':
    'Any sequence of calls leaves what an independent model of the task tools says, and a sound log.',
  'tasks.tamper.columns':
    'A change to any column of tasks is found, and the finding names the row and the column.',
  'tasks.tamper.rows': 'A task that was deleted, added or renumbered with another program is found.',
  'tasks.tamper.copies': 'A change to any column of task_labels, task_dependencies or task_words is found.',
  'tasks.tamper.shadow':
    'A change to the tables behind task_words is found if it changes what a search finds.',
  'tasks.tamper.seat-belt': 'A dropped trigger is found.',
} as const;
