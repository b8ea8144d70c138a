import{G as e,N as t,Q as n,X as r,Z as i,at as a,et as o,nt as s,ot as c,q as l,rt as u,w as d}from"./page.js";const f={value:{title:`Value`,help:`JSON, as the kind expects it.`,wrong:`The value is no JSON`,empty:`Write the value: it is checked before anything starts.`,taken:`The kind takes this value.`,busy:`Checking the value …`},params:{title:`Params`,help:`A JSON object: what the saga begins with.`,wrong:`The params are no JSON`,empty:`Write the params, {} if there are none: they are checked before anything starts.`,taken:`The machine takes these params.`,busy:`Checking the params …`}};function p({value:e,key:t,name:n,labels:r,priority:a},o){let s={value:h(o.wrong,()=>i(e))};t&&(s.idempotency_key=t),n&&(s.name=n),a&&(s.priority=Number(a));let c=r.split(`
`).map(e=>e.trim()).filter(Boolean);return c.length>0&&(s.labels=Object.fromEntries(c.map(m))),s}function m(e){let t=e.indexOf(`=`);if(t<1)throw new r(400,{detail:`The label “${e}” has no name.`,remedy:`Write each label as name=value on a line of its own.`});return[e.slice(0,t).trim(),e.slice(t+1).trim()]}function h(e,t){try{return t()}catch(t){throw new r(400,{detail:`${e}: ${t instanceof Error?t.message:t}.`,remedy:`Correct it.`})}}function g({kind:i,takes:m,onClose:h}){let g=f[m],[v,y]=c({value:``,key:``,name:``,labels:``,priority:``,reason:``}),[b,x]=c(!1),[S,C]=c(null),[w,T]=c(!1),E=a(0),D=a(n()),O=`kinds/${encodeURIComponent(i)}/submit`,k=!v.value.trim(),A=async e=>{E.current+=1;let t=E.current,n=()=>t===E.current;T(!0),C(null);try{await e(n)}catch(e){if(!(e instanceof r))throw e;n()&&C(e)}finally{n()&&T(!1)}},{reason:j,...M}=v,N=JSON.stringify(M);u(()=>{if(E.current+=1,x(!1),C(null),T(!k),k)return;let e=window.setTimeout(()=>A(async e=>{await o(O,p(v,g),!0),e()&&x(!0)}),300);return()=>window.clearTimeout(e)},[N]);let P=()=>A(async()=>{let{submitted:t}=await o(O,{...p(v,g),reason:j,key:D.current});h(),e(l(t))}),F=!w&&b,I=(e,t,n,r=`text`)=>s`
    <label class="field"><span>${t} <span class="dim">${n}</span></span>
      <input type=${r} value=${v[e]} autocomplete="off" spellcheck="false" onInput=${t=>y({...v,[e]:t.target.value})} /></label>`,L=(e,t,n,r=2)=>s`
    <label class="field"><span>${t} <span class="dim">${n}</span></span>
      <textarea class="mono" rows=${r} value=${v[e]} autofocus=${e===`value`} autocomplete="off" spellcheck="false" onInput=${t=>y({...v,[e]:t.target.value})}></textarea></label>`;return s`
    <${t} title=${s`Start <bdi class="mono">${i}</bdi>`} onClose=${h}>
      <form onSubmit=${e=>{e.preventDefault(),F&&P()}}>
        ${L(`value`,g.title,g.help,6)}
        ${I(`key`,`Idempotency key`,`A second submission with this key finds the first.`)}
        ${I(`name`,`Name`,`Shown beside its id.`)}
        ${L(`labels`,`Labels`,`name=value, one a line.`)}
        ${I(`priority`,`Priority`,`0 unless set; higher goes first.`,`number`)}
        ${I(`reason`,`Reason`,`Recorded in the audit log.`)}
        <p role="status" class=${b?`done`:`dim`}>${_(g,k,w,b)}</p>
        ${S&&s`<${d} error=${S} />`}
        <footer>
          <button type="button" onClick=${h}>Cancel</button>
          <button type="submit" class="main" disabled=${!F}>Start</button>
        </footer>
      </form>
    <//>`}function _(e,t,n,r){return t?e.empty:r?e.taken:n?e.busy:``}export{g as Start};